"""What happened in one cell: its shape, how it is kept, and where it came from."""
