"""Cells compared: pure functions of the tables that `speclab.metrics.summary` makes, which read no file."""
