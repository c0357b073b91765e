"""Data of chapter 10's interactive parts: animation, explorer, matrix."""
