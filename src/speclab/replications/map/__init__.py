"""The map: the calibrated model over everything that a reader may change, as data for an interactive page."""
