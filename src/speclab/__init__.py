"""When speculative decoding pays, and when it stops paying."""

__version__ = "0.1.0"
