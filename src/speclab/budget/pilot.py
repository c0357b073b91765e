"""What a pilot says of a lab: at each place of each arm its speed, its variances and its fixed costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from speclab.budget.components import Estimate
from speclab.lab import BASELINE

BLOCKS = 5
"""Blocks of a window that its noise is estimated from, as intervals of findings are."""

Where = tuple[str, int]
"""Workload and concurrency."""


@dataclass(frozen=True, slots=True)
class CellPilot:
    """One arm at one place, all its repeats.

    Attributes
    ----------
    arm, workload, concurrency
        Which cell.
    log_speed : float
        Logarithm of the throughput, tok/s.
    texts, steps, machine : Estimate
        Components of the variance (`speclab.budget`); that of steps is in seconds.
    answers_per_s : float
        Answers that a window serves in a second; 0 where no answers are recorded.
    prompts : int
        Prompts that the workload has.
    ramp_s : float
        Time until every slot has ended its first answer, s.
    repeats, window_s : int, float
        What the pilot measured.
    same_prompts : bool
        Whether its repeats served the same prompts.
    passed : bool
        Whether it rests on cells that passed their checks.
    """

    arm: str
    workload: str
    concurrency: int
    log_speed: float
    texts: Estimate
    steps: Estimate
    machine: Estimate
    answers_per_s: float
    prompts: int
    ramp_s: float
    repeats: int
    window_s: float
    same_prompts: bool
    passed: bool

    @property
    def where(self) -> Where:
        """The cell's place."""
        return self.workload, self.concurrency

    def texts_served(self, repeats: int, window_s: float) -> float:
        """Return how many different prompts are answered, each repeat serving others; at most all of the workload."""
        return min(float(self.prompts), self.answers_per_s * repeats * window_s) if self.answers_per_s else np.inf

    def variance(self, repeats: int, window_s: float, texts_served: float | None = None) -> Estimate:
        """Return the variance of the mean log throughput, with the standard error of this forecast.

        Parameters
        ----------
        repeats, window_s : int, float
            The design.
        texts_served : float, optional
            Different prompts; those of `texts_served` where not given. Infinite: the interval is one for exactly the
            prompts that were served.
        """
        served = self.texts_served(repeats, window_s) if texts_served is None else texts_served
        parts = (
            (self.texts, 1 / served),
            (self.steps, 1 / (repeats * window_s)),
            (self.machine, 1 / repeats),
        )
        value = sum(part.value * share for part, share in parts)
        doubt = float(np.hypot.reduce([part.doubt * share for part, share in parts]))
        return Estimate(value, doubt)


@dataclass(frozen=True, slots=True)
class Pilot:
    """A pilot of a lab.

    Attributes
    ----------
    source : str
        The badge of its numbers.
    cells : tuple of CellPilot
        Every arm that stands beside the baseline, and the baseline, in the lab's order.
    alone : tuple of (str, str, int)
        Arm, workload and concurrency of cells without a baseline: nothing can be said of their speed-up.
    start_s, pause_s : float
        What a server takes to start, and what a cell takes beside its length, s.
    drop_last_s : float
        What is dropped at a cell's end, s.
    """

    source: str
    cells: tuple[CellPilot, ...]
    alone: tuple[tuple[str, str, int], ...]
    start_s: float
    pause_s: float
    drop_last_s: float

    @property
    def by_place(self) -> dict[Where, dict[str, CellPilot]]:
        """The cells of each place by arm."""
        places: dict[Where, dict[str, CellPilot]] = {}
        for cell in self.cells:
            places.setdefault(cell.where, {})[cell.arm] = cell
        return places

    @property
    def speed_ups(self) -> list[CellPilot]:
        """The cells whose speed-up is asked for: those of all arms but the baseline."""
        return [cell for cell in self.cells if cell.arm != BASELINE]
