"""Intervals for ratios of sums over time, resampled from blocks of the window and from repeats.

What a cell gives is a ratio of sums (tokens / seconds, milliseconds / steps), and a comparison a ratio of two such. The
sums of a window are kept in blocks; the blocks of an arm and of its baseline stay pairs. Two things make the result
scatter, and both are drawn: blocks within each repeat's window, and whole repeats.

An interval from blocks sees only what varies *within* a window, and only if a block is longer than the stretch over
which the speed remembers itself (`joined`). A machine that is slower for some minutes is slower for the whole window:
no resampling of its blocks can know, and only repeats see it. How far repeats lie apart beyond their blocks is taken
from all places of a lab at once (`between`). Where a lab has no repeats at all, an interval is one for that hour, not
for the machine.

Sources: the block bootstrap, H. R. Künsch, Annals of Statistics 17 (1989) 1217-1241; Student's factor for the few
blocks there are, T. C. Hesterberg, The American Statistician 69 (2015) 371-386; degrees of freedom of two variances
together, F. E. Satterthwaite, Biometrics Bulletin 2 (1946) 110-114.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

DRAWS = 2000
"""Resamples of each place: an interval's end then varies by about a tenth of its half-width, or less."""

SEED = 20_269

FEWEST_BLOCKS = 3
"""Blocks of a window that an interval needs at least."""

LEVEL = 0.95

Draws = NDArray[np.float64]
"""Resampled values of one quantity, shape (draws,)."""

DrawsOf = Callable[..., Draws | None]
"""`speclab.results.Results.draws`: resampled values of a finding at one place."""


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


@dataclass(frozen=True, slots=True)
class Resampled:
    """One place, resampled: the shape of its scatter, and how wide the blocks and the repeats say that it is.

    Attributes
    ----------
    shape : ndarray, shape (draws, quantities)
        Resampled logarithms of the quantities, centred at 0 and of unit variance; NaN where there are none.
    luck : ndarray, shape (draws, 1)
        A uniform number for each draw, from which Student's tails are made.
    blocks : ndarray, shape (quantities,)
        Variance of a quantity's logarithm as its blocks within windows give it.
    repeats : ndarray, shape (quantities,)
        Variance of a single repeat's logarithm as the repeats give it; NaN with fewer than two.
    n, per_repeat : int
        Repeats, and blocks of each.
    """

    shape: NDArray[np.float64]
    luck: NDArray[np.float64]
    blocks: NDArray[np.float64]
    repeats: NDArray[np.float64]
    n: int
    per_repeat: int


@dataclass(frozen=True, slots=True)
class Between:
    """How far repeats of a place lie apart beyond what their blocks explain: a variance and its degrees of freedom."""

    variance: NDArray[np.float64] | float = 0.0
    freedom: float = 1.0


def resample(
    sums: NDArray[np.float64], powers: NDArray[np.float64], rng: np.random.Generator, draws: int = DRAWS
) -> Resampled:
    """Return one place with the blocks of each repeat resampled, and how far its repeats lie apart.

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
    Resampled
        NaN for a quantity that cannot be resampled: fewer than `FEWEST_BLOCKS` blocks, or a sum that is not above 0 in
        some resample.
    """
    repeats, blocks, _ = sums.shape
    nothing = np.full(powers.shape[1], np.nan)
    luck = rng.random((draws, 1))
    if not repeats or blocks < FEWEST_BLOCKS:
        return Resampled(np.tile(nothing, (draws, 1)), luck, nothing, nothing, repeats, blocks)
    picked = rng.multinomial(blocks, np.full(blocks, 1 / blocks), size=(draws, repeats)).astype(np.float64)
    within = _logs(np.einsum("drb,rbc->dc", picked, sums, optimize=True), powers)
    spread = within.std(axis=0, ddof=1)
    return Resampled(
        shape=(within - within.mean(axis=0)) / np.where(spread > 0, spread, 1.0),
        luck=luck,
        blocks=within.var(axis=0, ddof=1) * blocks / (blocks - 1),
        repeats=_logs(sums.sum(axis=1), powers).var(axis=0, ddof=1) if repeats > 1 else nothing,
        n=repeats,
        per_repeat=blocks,
    )


def between(variances: ArrayLike, explained: ArrayLike, repeats: ArrayLike) -> Between:
    """Return how far repeats lie apart, from several places at once.

    A place with three repeats cannot say it; all places of a lab together can, since it is the machine that differs
    from one repeat to the next.

    Parameters
    ----------
    variances, explained : array_like, shape (places,)
        Variance of a single repeat as the repeats give it, and as the blocks within them do.
    repeats : array_like, shape (places,)
        Places with fewer than two repeats, or without a variance, are excluded.
    """
    apart, within, n = (np.asarray(column, dtype=np.float64) for column in (variances, explained, repeats))
    known = np.isfinite(apart) & np.isfinite(within) & (n > 1)
    freedom = n[known] - 1
    if not known.any():
        return Between()
    excess = float(np.average(apart[known] - within[known], weights=freedom))
    return Between(max(0.0, excess), float(freedom.sum()))


def deviations(place: Resampled, apart: Sequence[Between], repeated: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return resampled logarithms of a place's quantities, less the logarithm itself.

    Parameters
    ----------
    place : Resampled
        From `resample`.
    apart : sequence of Between, shape (quantities,)
        How far repeats lie apart, by quantity.
    repeated : ndarray, shape (draws, quantities)
        Where the repeats might have lain, in standard errors: normal draws. Three repeats themselves have ten different
        resamples, all too near the middle.

    Returns
    -------
    ndarray, shape (draws, quantities)
        Centred at 0: blocks as they were resampled, plus the scatter of repeats, with the tails of Student's t for as
        many degrees of freedom as both have together (Welch and Satterthwaite). NaN where the place could not be
        resampled.
    """
    from scipy import stats  # takes half a second, and most commands do not come here

    of_repeats = np.array([repeats.variance for repeats in apart]) / max(place.n, 1)
    freedom_of_repeats = np.array([repeats.freedom for repeats in apart])
    freedom_of_blocks = max(place.n, 1) * (place.per_repeat - 1.0)
    variance = place.blocks + of_repeats
    doubt = place.blocks**2 / freedom_of_blocks + of_repeats**2 / freedom_of_repeats
    freedom = np.where(variance > 0, variance**2 / np.where(doubt > 0, doubt, 1.0), freedom_of_blocks)
    kinds, kind = np.unique(np.nan_to_num(freedom, nan=1.0), return_inverse=True)
    tails = np.sqrt(kinds / stats.chi2.ppf(place.luck, kinds))[:, kind]
    drawn: NDArray[np.float64] = (place.shape * np.sqrt(place.blocks) + repeated * np.sqrt(of_repeats)) * tails
    return drawn


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
    margin = _students(level, len(values) - 1) * error
    return float(values.mean()) - margin, float(values.mean()) + margin


@cache
def _students(level: float, freedom: int) -> float:
    """Return Student's factor of an interval; a lab asks for the same few hundreds of times."""
    from scipy import stats  # takes half a second, and most commands do not come here

    return float(stats.t.ppf((1 + level) / 2, freedom))


def _logs(totals: NDArray[np.float64], powers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithm of each product, shape (rows, quantities); NaN where a sum that it needs is not above 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(totals > 0, np.log(totals), np.nan)
    known = np.nan_to_num(logs) @ powers
    missing = np.isnan(logs).astype(np.float64) @ (powers != 0).astype(np.float64) > 0
    # one resample without a value would make the width depend on which were left out
    return np.where(missing.any(axis=0), np.nan, known)
