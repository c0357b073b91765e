"""What the instrument is tried on: published figures, two documents rebuilt, the model held against measurements.

Nothing outside this package, the command line and the book's notebooks knows it.
"""
