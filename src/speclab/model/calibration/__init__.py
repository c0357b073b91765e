"""The cost model calibrated: few physical parameters fitted to measured cells, and what they predict, with its error.

`parameters` says what they are, `traffic` what the rows of a step hold, `price` what a step takes, `fit` finds
parameters from measured figures and how far they can be trusted, `predict` turns them into speed-ups and crossovers,
`bill` into dollars and joules. Nothing here reads a file.
"""
