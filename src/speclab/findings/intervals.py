"""Intervals for ratios of sums over time, resampled from blocks of the window and from repeats.

What a cell gives is a ratio of sums (tokens / seconds, milliseconds / steps), and a comparison a ratio of two such. The
sums of a window are kept in blocks; the blocks of an arm and of its baseline stay pairs. Two things make the result
scatter, and both are resampled: blocks within each repeat's window, and whole repeats.

An interval from blocks sees only what varies *within* a window, and only if a block is longer than the stretch over
which the speed remembers itself (`joined`). A machine that is slower for some minutes is slower for the whole window:
no resampling of its blocks can know, and only repeats see it. An interval that rests on one repeat is an interval for
that hour, not for the machine.

Sources: the block bootstrap, H. R. Künsch, Annals of Statistics 17 (1989) 1217-1241; resampling on two levels, A. C.
Davison and D. V. Hinkley, Bootstrap Methods and their Application (1997), section 3.8; Student's factor for the few
blocks there are, T. C. Hesterberg, The American Statistician 69 (2015) 371-386, section 5.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

DRAWS = 2000
"""Resamples of each place: an interval's end then varies by about a tenth of its half-width, or less."""

SEED = 20_269

FEWEST_BLOCKS = 3
"""Blocks of a window that an interval needs at least."""

LEVEL = 0.95

Draws = NDArray[np.float64]
"""Resampled values of one quantity, shape (draws,)."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A value and its 95% interval; a bound that is not known is None.

    Attributes
    ----------
    value, low, high : float or None
        In the quantity's own unit.
    n : int
        Repeats that it rests on.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int


def generator(*place: object) -> np.random.Generator:
    """Return a generator that is a function of a place: arms at one place are resampled with the same blocks."""
    return np.random.default_rng([SEED, zlib.crc32("/".join(map(str, place)).encode())])


def joined(sums: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Return the same sums in `count` longer blocks, neighbours added up.

    Parameters
    ----------
    sums : ndarray, shape (repeats, blocks, columns)
    count : int
        Blocks wanted; as they are where there are no more.

    Returns
    -------
    ndarray, shape (repeats, count, columns)
        Blocks that do not divide evenly go to neighbouring ones, which are then longer by one.
    """
    there = sums.shape[1]
    if count >= there:
        return sums
    starts = np.linspace(0, there, count, endpoint=False).astype(int)
    added: NDArray[np.float64] = np.add.reduceat(sums, starts, axis=1)
    return added


def deviations(
    sums: NDArray[np.float64],
    powers: NDArray[np.float64],
    rng: np.random.Generator,
    draws: int = DRAWS,
) -> NDArray[np.float64]:
    """Return resampled logarithms of products of sums, less the logarithm itself.

    The draws are resampled on both levels, then given the width that theory asks for: that of the blocks within
    windows or that of the repeats, whichever is wider, and the tails of Student's t for as many blocks or repeats as
    there are. The wider of two is a little too wide where repeats differ by no more than their blocks do.

    Parameters
    ----------
    sums : ndarray, shape (repeats, blocks, columns)
        Sums over each block; an arm's and its baseline's side by side.
    powers : ndarray, shape (columns, quantities)
        Each quantity is the product of the columns' totals, each to its power: (1, -1) is a ratio.
    rng : numpy.random.Generator
        Source of the resampling.
    draws : int
        How many.

    Returns
    -------
    ndarray, shape (draws, quantities)
        Centred at 0. NaN for a quantity that cannot be resampled: fewer than `FEWEST_BLOCKS` blocks, or a sum that is
        not above 0 in some resample.
    """
    repeats, blocks, _ = sums.shape
    if not repeats or blocks < FEWEST_BLOCKS:
        return np.full((draws, powers.shape[1]), np.nan)
    picked = rng.multinomial(blocks, np.full(blocks, 1 / blocks), size=(draws, repeats)).astype(np.float64)
    chosen = rng.multinomial(repeats, np.full(repeats, 1 / repeats), size=draws).astype(np.float64)
    luck = rng.random(draws)[:, None]
    within = _logs(np.einsum("drb,rbc->dc", picked, sums, optimize=True), powers)
    both = _logs(np.einsum("dr,drb,rbc->dc", chosen, picked, sums, optimize=True), powers)
    variance = within.var(axis=0, ddof=1) * blocks / (blocks - 1)
    freedom = np.full(powers.shape[1], repeats * (blocks - 1.0))
    if repeats > 1:
        of_repeats = _logs(sums.sum(axis=1), powers).var(axis=0, ddof=1) / repeats
        wider = of_repeats > variance
        variance, freedom = np.where(wider, of_repeats, variance), np.where(wider, repeats - 1.0, freedom)
    spread = both.std(axis=0, ddof=1)
    shape = (both - both.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    tails = np.sqrt(freedom / stats.chi2.ppf(luck, freedom))
    found: NDArray[np.float64] = shape * np.sqrt(variance) * tails
    return found


def bounds(draws: NDArray[np.float64], level: float = LEVEL) -> tuple[float, float]:
    """Return the interval that holds the middle `level` of the draws, shape (draws,); infinite draws count as such."""
    tail = (1 - level) / 2
    if np.isnan(draws).any():
        return np.nan, np.nan
    low, high = np.quantile(draws, [tail, 1 - tail], method="inverted_cdf")
    return float(low), float(high)


def of_repeats(values: NDArray[np.float64], level: float = LEVEL) -> tuple[float, float]:
    """Return the interval of a mean of repeats, shape (repeats,), by Student's t; NaN with fewer than two."""
    if len(values) < 2:
        return np.nan, np.nan
    error = float(values.std(ddof=1)) / len(values) ** 0.5
    margin = float(stats.t.ppf((1 + level) / 2, len(values) - 1)) * error
    return float(values.mean()) - margin, float(values.mean()) + margin


def _logs(totals: NDArray[np.float64], powers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithm of each product, shape (rows, quantities); NaN where a sum that it needs is not above 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(totals > 0, np.log(totals), np.nan)
    known = np.nan_to_num(logs) @ powers
    missing = np.isnan(logs).astype(np.float64) @ (powers != 0).astype(np.float64) > 0
    # one resample without a value would make the width depend on which were left out
    return np.where(missing.any(axis=0), np.nan, known)
