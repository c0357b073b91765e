"""Where a speed-up is used up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from speclab.findings.pairs import NOT_REACHED, NOT_RESOLVED, OK


@dataclass(frozen=True, slots=True)
class Crossing:
    """The concurrency at which a speed-up falls to 1.

    Attributes
    ----------
    value : float or None
        Requests in flight, interpolated; None unless `status` is ok.
    low, high : float or None
        Measured concurrencies between which the crossing lies. Not reached: above 1 up to `low`, or below 1 from
        `high` on.
    status : str
        ``ok``, ``not reached`` or ``not resolved``.
    n : int
        Points of the curve.
    """

    value: float | None
    low: float | None
    high: float | None
    status: str
    n: int


def crossover(concurrency: ArrayLike, speed_up: ArrayLike, unusable: Sequence[float] = ()) -> Crossing:
    """Return where a speed-up falls to 1, linear in the logarithm of the concurrency.

    Parameters
    ----------
    concurrency, speed_up : array_like, shape (points,)
        The curve. Points without a value are left out.
    unusable : sequence of float
        Concurrencies that were measured but may not be used (a failed cell, a failed check).

    Returns
    -------
    Crossing
        The first downward crossing. Not resolved: the curve comes back above 1 after it, or an unusable point lies in
        the gap that would be interpolated, or the curve has no point. A speed-up of exactly 1 is no gain.
    """
    at, ratio = np.asarray(concurrency, dtype=np.float64), np.asarray(speed_up, dtype=np.float64)
    valid = np.isfinite(ratio)
    order = np.argsort(at[valid], kind="stable")
    at, ratio = at[valid][order], ratio[valid][order]
    if not len(at):
        return Crossing(None, None, None, NOT_RESOLVED, 0)
    above = ratio > 1
    falls = np.flatnonzero(above[:-1] & ~above[1:])
    if not len(falls):
        low, high = (float(at[-1]), None) if above[-1] else (None, float(at[0]))
        beyond = [skipped for skipped in unusable if (skipped > at[-1] if above[-1] else skipped < at[0])]
        return Crossing(None, low, high, NOT_RESOLVED if beyond else NOT_REACHED, len(at))
    first = int(falls[0])
    low_at = float(at[first])
    if above[first + 1 :].any():
        last_at = None if above[-1] else float(at[int(falls[-1]) + 1])
        return Crossing(None, low_at, last_at, NOT_RESOLVED, len(at))
    high_at = float(at[first + 1])
    if any(low_at < skipped < high_at for skipped in unusable):
        return Crossing(None, low_at, high_at, NOT_RESOLVED, len(at))
    share = (ratio[first] - 1) / (ratio[first] - ratio[first + 1])
    value = float(np.exp(np.log(low_at) + share * np.log(high_at / low_at)))
    return Crossing(value, low_at, high_at, OK, len(at))
