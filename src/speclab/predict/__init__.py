"""The calibrated model: few physical parameters fitted to measured cells, what they predict, and with what error.

`parameters` says what they are, `traffic` what the rows of a step hold, `step_time` what a step takes, `fit` finds
parameters from measured figures and how far they can be trusted, `prediction` turns them into speed-ups and crossovers,
`cost` into dollars and joules. `query` is a question as a person puts it (names, lists and milliseconds), `answer` its
answer. Nothing here reads a file: a calibration is handed in.
"""
