"""The fewest seconds for a half-width: one place at a time, since only a place's arms share anything.

A side's variance falls with its seconds, and ever more slowly; so the seconds that it needs are a convex function of
the variance that it may have, and how much of a speed-up's variance the baseline takes is a convex question in one
number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from speclab.budget.pilot import BLOCKS, CellPilot
from speclab.findings.intervals import LEVEL
from speclab.lab import BASELINE

SEARCHED = 1e-6
"""How near to its ends the baseline's share of the variance is searched."""


@dataclass(frozen=True, slots=True)
class Overhead:
    """What a cell takes beside its windows, in each repeat.

    Attributes
    ----------
    lost_s : float
        Time that gives no window: the pause before a cell, its ramp, the end that is dropped, s.
    least_s : float
        The shortest window, s.
    """

    lost_s: float
    least_s: float


@dataclass(frozen=True, slots=True)
class Portion:
    """What one place takes.

    Attributes
    ----------
    window_s : mapping of str to float
        Length of each arm's window, in each repeat, s; the baseline's among them.
    seconds : float
        All repeats of all its cells, with what they lose, s; infinite where no length reaches the half-width.
    """

    window_s: Mapping[str, float]
    seconds: float


def student(repeats: int) -> float:
    """Return the factor between the standard error and the half-width of a 95% interval over so many repeats.

    Student's, with the degrees of freedom of the blocks of both sides' windows.
    """
    from scipy import stats  # takes half a second, and most commands do not come here

    return float(stats.t.ppf((1 + LEVEL) / 2, 2 * repeats * (BLOCKS - 1)))


def allowed(half_width: float, repeats: int) -> float:
    """Return the variance of a log speed-up whose 95% interval has a half-width, as a share of the speed-up."""
    return float(np.arcsinh(half_width) / student(repeats)) ** 2


def half_width(variance: float, repeats: int) -> float:
    """Return the half-width of the interval that a variance of the log speed-up gives, as a share: (high - low) / 2."""
    return float(np.sinh(student(repeats) * np.sqrt(variance)))


def floor(cell: CellPilot, repeats: int) -> float:
    """Return the variance that is left to one side however long its windows: all prompts, so many repeats."""
    return (cell.texts.value / cell.prompts if cell.answers_per_s else 0.0) + cell.machine.value / repeats


def seconds_for(cell: CellPilot, variance: float, repeats: int) -> float:
    """Return the seconds of window, all repeats together, after which one side has a variance; infinite if never."""
    left = variance - cell.machine.value / repeats
    if left <= 0:
        return np.inf
    if not cell.answers_per_s:
        return cell.steps.value / left
    seconds = (cell.texts.value / cell.answers_per_s + cell.steps.value) / left
    all_served_s = cell.prompts / cell.answers_per_s
    if seconds <= all_served_s:
        return seconds
    left -= cell.texts.value / cell.prompts
    return max(all_served_s, cell.steps.value / left) if left > 0 else np.inf


def share(
    baseline: CellPilot, arms: Mapping[str, CellPilot], variance: float, repeats: int, lost: Mapping[str, Overhead]
) -> Portion:
    """Return the fewest seconds in which every arm's speed-up at a place has a variance.

    Parameters
    ----------
    baseline, arms : CellPilot, mapping of str to CellPilot
        The place's cells.
    variance : float
        That a log speed-up may have (`allowed`).
    repeats : int
        How often each cell is run.
    lost : mapping of str to Overhead
        Of each arm and the baseline.
    """
    from scipy.optimize import minimize_scalar  # takes half a second, and most commands do not come here

    low = floor(baseline, repeats)
    room = variance - max((floor(arm, repeats) for arm in arms.values()), default=0.0) - low
    if room <= 0:
        return Portion({}, np.inf)

    def windows(of_baseline: float) -> dict[str, float]:
        wanted = {BASELINE: seconds_for(baseline, low + of_baseline, repeats)}
        wanted |= {name: seconds_for(arm, variance - low - of_baseline, repeats) for name, arm in arms.items()}
        return {name: max(seconds / repeats, lost[name].least_s) for name, seconds in wanted.items()}

    def total(of_baseline: float) -> float:
        return sum(windows(of_baseline).values())

    ends = (room * SEARCHED, room * (1 - SEARCHED))
    best = float(minimize_scalar(total, bounds=ends, method="bounded", options={"xatol": room * SEARCHED}).x)
    made = windows(best)
    return Portion(made, repeats * (sum(made.values()) + sum(lost[name].lost_s for name in made)))
