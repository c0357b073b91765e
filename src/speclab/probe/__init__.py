"""Measured step costs of the device at hand, with random weights and without a server: what `speclab probe` does.

`shapes` says which model, `points` and `plan` what is timed and what of it fits into memory and time, `step` runs one
pass and `timing` times it, `record` keeps what came out, `calibration` makes the model's parameters of it. Only
`attention`, `step`, `timing`, `measure` and `run` import torch.
"""
