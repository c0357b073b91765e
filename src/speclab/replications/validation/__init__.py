"""The calibrated model beside what was measured: what it was fitted on, what it predicts, and its errors.

`lab09` is the published lab's replica, `published` other people's measurements, `measured` a lab of our own; `errors`
sums them up. Pure functions of tables; `speclab.replications.calibrations` reads the files.
"""
