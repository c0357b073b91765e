"""The map: the calibrated model over all that a reader may change, as data of an interactive page."""
