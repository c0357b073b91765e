"""Which places an amount of hours buys, in how many repeats."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from speclab.budget.allocate import Overhead, Portion, allowed, floor, half_width, share
from speclab.budget.pilot import CellPilot, Pilot, Where
from speclab.lab import BASELINE

HOUR_S = 3600.0

REPEATS = (3, 4, 5, 6, 8, 10, 12)
"""Repeats that are tried: two give a variance between repeats one degree of freedom, and nobody believes it."""

LEAST_WINDOW_S = 5.0
"""The shortest window that is planned; an answer's time where that is longer, s."""

FEWEST_TEXTS = 12
"""Answers that a cell's repeats hold together at least: an interval over fewer texts guesses how far they scatter."""

HALVINGS = 24
"""Steps in which a common half-width is searched."""

Sides = dict[Where, frozenset[str]]
"""The arms at each place whose speed-up is measured."""


@dataclass(frozen=True)
class Spending:
    """What is measured, and for how long.

    Attributes
    ----------
    pilot : Pilot
        What it rests on.
    half_width : float
        Of the 95% interval of each speed-up, as a share of it.
    repeats : int
        How often each cell is run.
    shares : mapping of Where to Portion
        What each place takes.
    """

    pilot: Pilot
    half_width: float
    repeats: int
    shares: Mapping[Where, Portion] = field(default_factory=dict)

    @property
    def speed_ups(self) -> list[tuple[str, str, int]]:
        """Arm, workload and concurrency of each speed-up that reaches the half-width."""
        return [(arm, *where) for where, part in self.shares.items() for arm in part.window_s if arm != BASELINE]

    @property
    def arms(self) -> set[str]:
        """All arms that are measured somewhere."""
        return {arm for part in self.shares.values() for arm in part.window_s}

    @cached_property
    def hours(self) -> float:
        """All cells, and the servers' starts in each repeat, h."""
        starts = self.repeats * self.pilot.start_s * len(self.arms)
        return (sum(part.seconds for part in self.shares.values()) + starts) / HOUR_S


class Prices:
    """What arms at a place cost at one half-width in so many repeats, in windows of whole seconds."""

    def __init__(self, pilot: Pilot, half_width: float, repeats: int) -> None:
        self.pilot, self.half_width, self.repeats = pilot, half_width, repeats
        self._variance = allowed(half_width, repeats)
        self._places = pilot.by_place
        self._made: dict[tuple[Where, frozenset[str]], Portion] = {}

    def of(self, where: Where, arms: frozenset[str]) -> Portion:
        """Return what a place takes with these arms, its baseline included."""
        if not arms:
            return Portion({}, 0.0)
        if (where, arms) not in self._made:
            cells = self._places[where]
            own = {name: cells[name] for name in cells if name in arms}
            lost = {name: overhead(self.pilot, cells[name], self.repeats) for name in (BASELINE, *own)}
            self._made[where, arms] = _whole(
                share(cells[BASELINE], own, self._variance, self.repeats, lost), self.repeats
            )
        return self._made[where, arms]

    def reachable(self) -> Sides:
        """Return the speed-ups that reach the half-width at some length; places without one are not in it."""
        sides: Sides = {}
        for where, cells in self._places.items():
            low = floor(cells[BASELINE], self.repeats)
            arms = frozenset(
                name
                for name, cell in cells.items()
                if name != BASELINE and floor(cell, self.repeats) + low < self._variance
            )
            if arms:
                sides[where] = arms
        return sides

    def spent(self, sides: Sides) -> Spending:
        """Return a spending on these speed-ups."""
        shares = {where: self.of(where, arms) for where, arms in sides.items() if arms}
        return Spending(self.pilot, self.half_width, self.repeats, shares)


def _whole(made: Portion, repeats: int) -> Portion:
    """Return a share with its windows in whole seconds, never shorter than they were."""
    windows = {arm: float(math.ceil(window_s - 1e-6)) for arm, window_s in made.window_s.items()}
    more_s = sum(windows.values()) - sum(made.window_s.values())
    return replace(made, window_s=windows, seconds=made.seconds + repeats * more_s)


def overhead(pilot: Pilot, cell: CellPilot, repeats: int) -> Overhead:
    """Return what a cell loses in each repeat, and its shortest window."""
    least_s = LEAST_WINDOW_S
    if cell.answers_per_s:
        answer_s = cell.concurrency / cell.answers_per_s  # Little's law
        least_s = max(least_s, answer_s, FEWEST_TEXTS / (cell.answers_per_s * repeats))
    return Overhead(pilot.pause_s + math.ceil(cell.ramp_s) + pilot.drop_last_s, math.ceil(least_s))


def everything(pilot: Pilot, wanted: float, repeats: Iterable[int] = REPEATS) -> Spending:
    """Return the spending that reaches a half-width at as many places as any length can, in the fewest hours."""
    made = [prices.spent(prices.reachable()) for prices in (Prices(pilot, wanted, count) for count in repeats)]
    return min(made, key=lambda spending: (-len(spending.speed_ups), spending.hours))


def within(pilot: Pilot, wanted: float, hours: float, repeats: Iterable[int] = REPEATS) -> Spending:
    """Return the spending of at most so many hours that reaches a half-width at as many places as it can.

    Cheap places come first, a place's further arms at what they add: its baseline is there already.
    """
    made = [_greedy(Prices(pilot, wanted, count), hours) for count in repeats]
    return min(made, key=lambda spending: (-len(spending.speed_ups), spending.hours))


def _greedy(prices: Prices, hours: float) -> Spending:
    pilot, repeats = prices.pilot, prices.repeats
    wanted = prices.reachable()
    # at each place the cheap arms first
    order = {
        where: sorted(arms, key=lambda arm: (prices.of(where, frozenset([arm])).seconds, arm))
        for where, arms in wanted.items()
    }
    taken: Sides = dict.fromkeys(wanted, frozenset())
    running: set[str] = set()
    left_s = hours * HOUR_S
    while True:
        offers = []
        for where, arms in order.items():
            rest = [arm for arm in arms if arm not in taken[where]]
            for count in range(1, len(rest) + 1):
                more = taken[where] | frozenset(rest[:count])
                starts = len((more | {BASELINE}) - running) * repeats * pilot.start_s
                price = prices.of(where, more).seconds - prices.of(where, taken[where]).seconds + starts
                if price <= left_s:
                    offers.append((price / count, price, where, more))
        if not offers:
            return prices.spent(taken)
        _, price, where, more = min(offers, key=lambda offer: (offer[0], str(offer[2])))
        left_s -= price
        taken[where] = more
        running |= more | {BASELINE}


def alike(pilot: Pilot, hours: float, sides: Sides, repeats: Iterable[int] = REPEATS) -> Spending | None:
    """Return the spending of so many hours whose largest half-width is the smallest; None where none below 1 is."""

    def of(wanted: float) -> Spending:
        return min((Prices(pilot, wanted, count).spent(sides) for count in repeats), key=lambda made: made.hours)

    repeats = tuple(repeats)
    low, high = 0.0, 1.0
    if not sides or of(high).hours > hours:
        return None
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if of(middle).hours <= hours else (middle, high)
        if high - low < high / 200:
            break
    return of(high)


@dataclass(frozen=True, slots=True)
class Missing:
    """A speed-up that a spending leaves out.

    Attributes
    ----------
    arm, workload, concurrency
        Which one.
    hours : float
        What it would add; infinite where no length reaches the half-width.
    best : float
        The half-width that is left at any length, with all the prompts and the most repeats.
    prompts : float
        Different prompts that its workload needs at least; infinite where the machine alone scatters too much.
    """

    arm: str
    workload: str
    concurrency: int
    hours: float
    best: float
    prompts: float


def missing(spending: Spending) -> list[Missing]:
    """Return the speed-ups that a spending leaves out, those that cost least first."""
    pilot, wanted = spending.pilot, spending.half_width
    prices, most = Prices(pilot, wanted, spending.repeats), REPEATS[-1]
    planned, made = set(spending.speed_ups), []
    for cell in pilot.speed_ups:
        if (cell.arm, *cell.where) in planned:
            continue
        base = pilot.by_place[cell.where][BASELINE]
        here = spending.shares.get(cell.where, Portion({}, 0.0))
        with_it = frozenset(here.window_s) - {BASELINE} | {cell.arm}
        seconds = prices.of(cell.where, with_it).seconds - here.seconds
        seconds += len({cell.arm, BASELINE} - spending.arms) * spending.repeats * pilot.start_s
        best = half_width(floor(cell, most) + floor(base, most), most)
        left = allowed(wanted, most) - (cell.machine.value + base.machine.value) / most
        prompts = (cell.texts.value + base.texts.value) / left if left > 0 else np.inf
        made.append(Missing(cell.arm, *cell.where, seconds / HOUR_S, best, prompts))
    return sorted(made, key=lambda row: (row.hours, row.best, row.arm, row.workload, row.concurrency))


def minutes(spending: Spending) -> dict[tuple[str, str, int], float]:
    """Return the minutes of each cell by arm, workload and concurrency, all repeats; servers' starts are in none."""
    pilot = spending.pilot
    return {
        (cell.arm, *cell.where): spending.repeats
        * (part.window_s[cell.arm] + overhead(pilot, cell, spending.repeats).lost_s) / 60
        for cell in pilot.cells
        if (part := spending.shares.get(cell.where)) is not None and cell.arm in part.window_s
    }  # fmt: skip
