"""Measured step costs of the device at hand, with random weights and without a server: what `speclab probe` does.

`shapes` says which model, `plan` which points fit into memory and time, `step` runs one pass of it and `timing` times
it, `record` keeps what came out. Only `attention`, `step`, `timing` and `measure` need torch; nothing else imports it.
"""
