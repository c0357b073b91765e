"""Everything that a plan says, from one pilot."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from speclab.budget import forecast
from speclab.budget.forecast import Flatness, SpeedUp
from speclab.budget.pilot import Pilot
from speclab.budget.spend import (
    REPEATS,
    Missing,
    Sides,
    Spending,
    alike,
    everything,
    minutes,
    missing,
    within,
)
from speclab.lab import BASELINE

NEXT_H = 1.0
"""Hours beyond a plan that it is asked where they would go."""


@dataclass(frozen=True, slots=True)
class InRepeats:
    """What so many repeats come to: speed-ups that reach the half-width, hours, and the median window."""

    repeats: int
    speed_ups: int
    hours: float
    window_s: float


@dataclass(frozen=True, slots=True)
class NextHour:
    """Where the next hour goes.

    Attributes
    ----------
    minutes : mapping
        More minutes by arm, workload and concurrency; what grows most first.
    gained : tuple
        Speed-ups that reach the half-width only then.
    half_width : float
        The largest of those that are planned by then.
    """

    minutes: Mapping[tuple[str, str, int], float]
    gained: tuple[tuple[str, str, int], ...]
    half_width: float


@dataclass(frozen=True)
class Outlook:
    """What a plan buys.

    Attributes
    ----------
    hours : float or None
        The hours that were given.
    spending : Spending
        What is measured.
    speed_ups, crossings, flatness
        Forecasts (`speclab.budget.forecast`).
    missing : list of Missing
        Speed-ups that are left out.
    common : Spending or None
        The same hours spread over all speed-ups, as narrow as the widest of them allows; None where no hours were
        given, or where all reach the half-width.
    in_repeats : list of InRepeats
        More repeats against longer windows.
    next_hour : NextHour or None
        None where another hour would buy nothing.
    """

    hours: float | None
    spending: Spending
    speed_ups: list[SpeedUp]
    crossings: list[forecast.CrossoverChance]
    flatness: list[Flatness]
    missing: list[Missing]
    common: Spending | None
    in_repeats: list[InRepeats]
    next_hour: NextHour | None

    @property
    def asked(self) -> int:
        """Speed-ups that the pilot has."""
        return len(self.spending.pilot.speed_ups)

    @property
    def affordable(self) -> list[Missing]:
        """Speed-ups that only more hours keep out."""
        return [row for row in self.missing if np.isfinite(row.hours)]

    @property
    def out_of_reach(self) -> list[Missing]:
        """Speed-ups that no length resolves."""
        return [row for row in self.missing if not np.isfinite(row.hours)]


def outlook(pilot: Pilot, half_width: float, hours: float | None, findings: pd.DataFrame) -> Outlook:
    """Return what a plan buys.

    Parameters
    ----------
    pilot : Pilot
        From `speclab.budget.estimate.pilot`.
    half_width : float
        Of each speed-up's 95% interval, as a share of it.
    hours : float, optional
        The budget; where not given, as many as the half-width needs.
    findings : pd.DataFrame
        The pilot's (`speclab.findings.long_table.COLUMNS`).
    """
    chosen = {count: _bought(pilot, half_width, hours, count) for count in REPEATS}
    spending = min(chosen.values(), key=lambda made: (-len(made.speed_ups), made.hours))
    all_sides: Sides = {where: frozenset(cells) - {BASELINE} for where, cells in pilot.by_place.items()}
    left_out = missing(spending)
    common = alike(pilot, hours, all_sides, (spending.repeats,)) if hours is not None and left_out else None
    return Outlook(
        hours=hours,
        spending=spending,
        speed_ups=forecast.speed_ups(spending),
        crossings=forecast.crossings(spending),
        flatness=forecast.flatness(spending, findings),
        missing=left_out,
        common=common,
        in_repeats=[_in_repeats(made) for made in chosen.values()],
        next_hour=_next_hour(spending),
    )


def _bought(pilot: Pilot, half_width: float, hours: float | None, repeats: int) -> Spending:
    if hours is None:
        return everything(pilot, half_width, (repeats,))
    return within(pilot, half_width, hours, (repeats,))


def _in_repeats(spending: Spending) -> InRepeats:
    windows = [window_s for part in spending.shares.values() for window_s in part.window_s.values()]
    middle = float(np.median(windows)) if windows else np.nan
    return InRepeats(spending.repeats, len(spending.speed_ups), spending.hours, middle)


def _next_hour(before: Spending) -> NextHour | None:
    """Return where another hour goes: to speed-ups that it adds, or else to all that are planned, alike."""
    pilot, repeats = before.pilot, (before.repeats,)
    after: Spending | None = within(pilot, before.half_width, before.hours + NEXT_H, repeats)
    had = set(before.speed_ups)
    if after is None or len(after.speed_ups) <= len(had):
        sides: Sides = {where: frozenset(part.window_s) - {BASELINE} for where, part in before.shares.items()}
        after = alike(pilot, before.hours + NEXT_H, sides, repeats)
    if after is None:
        return None
    was, becomes = minutes(before), minutes(after)
    more = {cell: becomes.get(cell, 0.0) - was.get(cell, 0.0) for cell in {**was, **becomes}}
    grown = dict(sorted(((cell, gain) for cell, gain in more.items() if gain > 0), key=lambda item: -item[1]))
    gained = tuple(itertools.filterfalse(had.__contains__, after.speed_ups))
    return NextHour(grown, gained, after.half_width)
