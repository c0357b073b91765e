"""What a cell must pass before it counts: checks by subject, and one table of them all."""
