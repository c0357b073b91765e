"""Drafters of our own: a corpus that the target writes, an EAGLE-3 head and a small draft model trained on it."""
