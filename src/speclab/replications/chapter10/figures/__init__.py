"""Figures of chapter 10's pages: each answers one question from a table of the model."""

from speclab.replications.chapter10.figures.passes import closed_forms, replay, roofline
from speclab.replications.chapter10.figures.speculation_presets import charged, frontier, gains

__all__ = ["charged", "closed_forms", "frontier", "gains", "replay", "roofline"]
