"""Figures of chapter 10's pages: each answers one question from a table of the model."""

from speclab.replications.chapter10.figures.levers import charged, frontier, gains
from speclab.replications.chapter10.figures.passes import closed_forms, replay, roofline

__all__ = ["charged", "closed_forms", "frontier", "gains", "replay", "roofline"]
