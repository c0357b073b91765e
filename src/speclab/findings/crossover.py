"""Where a speed-up is used up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from speclab.findings.intervals import bounds
from speclab.findings.pairs import NOT_REACHED, NOT_RESOLVED, OK

STRAYS = 0.025
"""Share of resampled curves that may cross inside the range where it is said that the curve does not."""


SPANS = 0.9
"""Share of the measured range (in the logarithm) that an interval covers if it decides nothing."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """The concurrency at which a speed-up falls to 1.

    Attributes
    ----------
    value : float or None
        Requests in flight, interpolated; None unless `status` is ok.
    low, high : float or None
        The 95% interval where the curve was resampled. None: it reaches beyond the measured range on that side (or
        nothing was resampled). Not reached: above 1 up to `low`, or below 1 from `high` on.
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


def crossover(
    concurrency: ArrayLike,
    speed_up: ArrayLike,
    unusable: Sequence[float] = (),
    draws: ArrayLike | None = None,
) -> Crossing:
    """Return where a speed-up falls to 1, linear in the logarithm of the concurrency.

    Parameters
    ----------
    concurrency, speed_up : array_like, shape (points,)
        The curve. Points without a value are left out.
    unusable : sequence of float
        Concurrencies that were measured but may not be used (a failed cell, a failed check).
    draws : array_like, shape (draws, points), optional
        Resampled curves; NaN in a point that could not be resampled, which then leaves no interval.

    Returns
    -------
    Crossing
        The first downward crossing. Not reached: the curve stays on one side of 1, and so do all but 2.5% of the
        resampled ones. Not resolved: the data do not decide, because the interval covers `SPANS` of the range, or the
        curve stays on one side but resampled ones do not, or it comes back above 1 after its fall, or an unusable point
        lies in the gap that would be interpolated, or there is no point. A speed-up of exactly 1 is no gain.

    Notes
    -----
    The interval holds what resampling shows. That the true curve may bend between two measured points is not in it:
    points closer together are the only remedy.
    """
    at, ratio = np.asarray(concurrency, dtype=np.float64), np.asarray(speed_up, dtype=np.float64)
    valid = np.isfinite(ratio)
    order = np.argsort(at[valid], kind="stable")
    at, ratio = at[valid][order], ratio[valid][order]
    if not len(at):
        return Crossing(None, None, None, NOT_RESOLVED, 0)
    fall = float(_first_falls(at, ratio[None, :])[0])
    curves = None if draws is None else np.asarray(draws, dtype=np.float64)[:, valid][:, order]
    resampled = curves is not None and not np.isnan(curves).any()
    crossings = _first_falls(at, curves) if curves is not None and resampled else np.array([fall])
    low, high = (value if np.isfinite(value) else None for value in bounds(crossings))
    if np.isinf(fall):
        if float(np.mean(crossings == fall)) < 1 - STRAYS:
            return Crossing(None, low, high, NOT_RESOLVED, len(at))
        low, high = (float(at[-1]), None) if fall > 0 else (None, float(at[0]))
        beyond = any(bad > at[-1] if fall > 0 else bad < at[0] for bad in unusable)
        return Crossing(None, low, high, NOT_RESOLVED if beyond else NOT_REACHED, len(at))
    above = ratio > 1
    first = int(np.flatnonzero(above[:-1] & ~above[1:])[0])
    in_gap = any(at[first] < bad < at[first + 1] for bad in unusable)
    returns = bool(above[first + 1 :].any())
    if not resampled:
        low = high = None
    if returns:
        high = None
    spans = resampled and _covered(at, low, high) >= SPANS
    if spans:
        low = high = None
    decided = not in_gap and not returns and not spans
    return Crossing(fall if decided else None, low, high, OK if decided else NOT_RESOLVED, len(at))


def _covered(at: NDArray[np.float64], low: float | None, high: float | None) -> float:
    """Return the share of the measured range that an interval covers, in the logarithm."""
    from_at, to_at = low if low is not None else at[0], high if high is not None else at[-1]
    return float(np.log(to_at / from_at) / np.log(at[-1] / at[0]))


def _first_falls(at: NDArray[np.float64], ratio: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return where each curve, shape (curves, points), first falls to 1: -inf if it starts below, inf if it never does.

    A curve that starts below 1 and rises above it later has its first fall after that.
    """
    above = ratio > 1
    falls = above[:, :-1] & ~above[:, 1:]
    first = np.argmax(falls, axis=1) if falls.shape[1] else np.zeros(len(ratio), dtype=np.int64)
    rows = np.arange(len(ratio))
    after = np.minimum(first + 1, ratio.shape[1] - 1)
    left, right = ratio[rows, first], ratio[rows, after]
    drop = np.where(left > right, left - right, 1.0)
    falls_once = falls.any(axis=1)
    share = np.where(falls_once, (left - 1) / drop, 0.0)
    value = np.exp(np.log(at[first]) + share * np.log(at[after] / at[first]))
    never = np.where(above[:, -1], np.inf, -np.inf)
    result: NDArray[np.float64] = np.where(falls_once, value, never)
    return result
