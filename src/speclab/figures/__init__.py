"""Figures: each answers one question from a table of findings, and says where its numbers come from."""

from speclab.figures.acceptance import acceptance_by_position, acceptance_over_concurrency
from speclab.figures.baseline import occupancy, spare_compute
from speclab.figures.cost import break_even, ngram_cost_and_return, step_anatomy
from speclab.figures.coverage import coverage
from speclab.figures.finding import finding_over_concurrency
from speclab.figures.keep import Kept, keep
from speclab.figures.speed import arms_at_one, speed_up
from speclab.figures.style import styles_of
from speclab.figures.trade_off import trade_off

__all__ = [
    "Kept",
    "acceptance_by_position",
    "acceptance_over_concurrency",
    "arms_at_one",
    "break_even",
    "coverage",
    "finding_over_concurrency",
    "keep",
    "ngram_cost_and_return",
    "occupancy",
    "spare_compute",
    "speed_up",
    "step_anatomy",
    "styles_of",
    "trade_off",
]
