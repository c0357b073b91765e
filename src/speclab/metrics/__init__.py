"""One cell's record turned into figures: pure functions of a `speclab.record.cell.Cell`, which read no file."""
