"""What the instrument is tried on: published figures, two rebuilt documents, the model checked against measurements.

Only the command line and the book's notebooks know of this package.
"""
