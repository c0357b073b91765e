"""Which arm at which concurrency, and where to switch without switching back and forth."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from speclab.findings.crossover import Crossing, crossover
from speclab.findings.pairs import NOT_RESOLVED, OK
from speclab.findings.speeds import Arms, Speed
from speclab.lab import BASELINE


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The arm to serve with at one number of requests in flight.

    Attributes
    ----------
    concurrency : float
        Requests in flight.
    arm : str
        The choice.
    speed : Speed
        Its speed-up.
    best : str
        The arm with the highest speed-up; another one where the two cannot be told apart.
    ties : tuple of str
        All arms that cannot be told from the best, which is one of them.
    status : str
        ``ok``; ``not resolved``: the baseline is among the ties, so neither a gain nor a loss is shown.
    """

    concurrency: float
    arm: str
    speed: Speed
    best: str
    ties: tuple[str, ...]
    status: str


@dataclass(frozen=True, slots=True)
class Switch:
    """Where one arm takes over from another as requests in flight rise.

    Attributes
    ----------
    below, above : str
        The arm at fewer requests in flight, and at more.
    value : float or None
        Where the two are equally fast, interpolated; None where it is only known to lie in the gap.
    low, high : int
        The gap: change over to `above` when more than `high` are in flight, and back to `below` when fewer than `low`
        are. In between keep what is running.
    status : str
        ``ok``; ``not resolved``: the gap is what lies between two measured concurrencies.
    """

    below: str
    above: str
    value: float | None
    low: int
    high: int
    status: str


def choices(by_concurrency: Mapping[float, Arms], order: Sequence[str]) -> list[Choice]:
    """Return the choice at each measured concurrency of one workload.

    The fastest arm, unless others cannot be told from it (the 95% interval of the quotient holds 1). Where arms that
    all gain are tied, the arm of the concurrency before is kept, since a switch that is not shown to help is not worth
    it, else the first in `order` is taken.

    Where the baseline is among the ties nothing is decided, and what is decided beside it decides: between two places
    with the same arm that arm is kept; below the first decided place its arm is, as fewer in flight never make
    speculation pay less; elsewhere it is the baseline, since a gain that is not shown is none.

    Parameters
    ----------
    by_concurrency : mapping
        Arms known at each concurrency, as in `speclab.findings.speeds.Places`; rising.
    order : sequence of str
        All arms, the cheapest first (smaller k).
    """
    decided: list[tuple[float, str, tuple[str, ...], str | None]] = []
    held = BASELINE
    for concurrency, arms in by_concurrency.items():
        best = max(arms, key=lambda arm: arms[arm].value)
        ties = tuple(arm for arm in arms if arm == best or not _is_slower(arms[arm], arms[best]))
        arm = None
        if BASELINE not in ties or ties == (BASELINE,):
            arm = held = next(name for name in (held, *order, *ties) if name in ties)
        decided.append((concurrency, best, ties, arm))
    made = []
    for index, (concurrency, best, ties, arm) in enumerate(decided):
        before = next((name for *_, name in decided[:index][::-1] if name), None)
        after = next((name for *_, name in decided[index + 1 :] if name), None)
        beside = after if before in (None, after) else None
        chosen = arm or (beside if beside in ties else None) or BASELINE
        status = NOT_RESOLVED if arm is None else OK
        made.append(Choice(concurrency, chosen, by_concurrency[concurrency][chosen], best, ties, status))
    return made


def switches(made: Sequence[Choice], by_concurrency: Mapping[float, Arms]) -> list[Switch]:
    """Return where the choice changes as requests in flight rise, each with its gap.

    The gap holds the interval of the point where the two arms are equally fast, and at least the square root of that
    point to either side: so much does the number in flight scatter when requests come at random (Poisson), and a
    narrower gap would be crossed without end.
    """
    changes = []
    for before, after in itertools.pairwise(made):
        if before.arm == after.arm:
            continue
        shared = {at: arms for at, arms in by_concurrency.items() if before.arm in arms and after.arm in arms}
        if len(shared) < 2:
            changes.append(_switch(before, after, Crossing(None, None, None, NOT_RESOLVED, len(shared)), 0))
            continue
        quotients = [arms[before.arm].over(arms[after.arm]) for arms in shared.values()]
        known = [quotient.draws for quotient in quotients if quotient.draws is not None]
        draws = np.column_stack(known) if len(known) == len(quotients) else None
        skipped = [at for at in by_concurrency if at not in shared]
        point = crossover(list(shared), [quotient.value for quotient in quotients], skipped, draws)
        changes.append(_switch(before, after, point, max(by_concurrency)))
    return changes


def _switch(before: Choice, after: Choice, point: Crossing, top: float) -> Switch:
    value, low, high = point.value, point.low, point.high
    between = value is not None and (low is None or low <= after.concurrency) and value >= before.concurrency
    if value is None or not between:
        gap = int(before.concurrency) + 1, int(after.concurrency) - 1
        return Switch(before.arm, after.arm, None, *gap, NOT_RESOLVED)
    swing = math.sqrt(value)
    lowest = min(value - swing, value if low is None else low)
    highest = max(value + swing, (top if high is None else high))
    return Switch(before.arm, after.arm, value, max(1, math.floor(lowest)), math.ceil(highest), OK)


def _is_slower(arm: Speed, best: Speed) -> bool:
    quotient = best.over(arm)
    low, _ = quotient.interval
    return quotient.value > 1 if math.isnan(low) else low > 1
