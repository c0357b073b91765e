"""Where the variance of a throughput lies: estimates from a pilot's blocks, answers and repeats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

FEWEST_PROMPTS = 3
"""Prompts that a variance between texts needs at least."""

SURE = 200.0
"""Degrees of freedom beyond which a variance counts as known: nothing in a pilot is surer than that."""

LEAST = 1e-12
"""Variance of what does not scatter at all, so that its logarithm exists."""

ROUNDS = 50
"""Rounds after which weights and the variance that they rest on have settled."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A variance and the standard error of its estimate."""

    value: float
    doubt: float


def texts(answers: pd.DataFrame) -> Estimate | None:
    """Return the variance between prompts of one arm's log tokens per step; None with fewer than `FEWEST_PROMPTS`.

    A workload's tokens per step is a ratio of sums, so a prompt counts by how far it pulls that ratio:
    ``(tokens - ratio x steps) / mean tokens`` of its answer (the delta method). How far a prompt's own answers lie
    apart, where it was answered in several cells, is no text's doing and is taken out (one-way analysis of variance):
    drafts that are accepted by chance leave no variance of texts.

    Parameters
    ----------
    answers : pd.DataFrame
        ``prompt_id, answers, steps, tokens``, a row for each prompt and cell, of one arm and workload.
    """
    if answers.empty or answers["prompt_id"].nunique() < FEWEST_PROMPTS:
        return None
    steps, tokens, count = (answers[name].to_numpy(np.float64) for name in ("steps", "tokens", "answers"))
    pull = (tokens - tokens.sum() / steps.sum() * steps) / count / (tokens.sum() / count.sum())
    groups = pd.Series(pull).groupby(answers["prompt_id"].to_numpy())
    sizes, means = groups.size().to_numpy(np.float64), groups.mean().to_numpy()
    prompts, rows = len(sizes), float(sizes.sum())
    among = float((sizes * (means - pull.mean()) ** 2).sum() / (prompts - 1))
    within = float(((pull - groups.transform("mean")) ** 2).sum() / (rows - prompts)) if rows > prompts else 0.0
    each = (rows - float((sizes**2).sum()) / rows) / (prompts - 1)
    return Estimate(max(0.0, (among - within) / each), among / each * float(np.sqrt(2 / (prompts - 1))))


def steps_in_window(rates: NDArray[np.float64], window_s: float, *, same_prompts: bool) -> tuple[float, int]:
    """Return the variance of a log throughput within windows, times seconds, and its degrees of freedom.

    Parameters
    ----------
    rates : ndarray, shape (repeats, blocks)
        Tokens per second in each block.
    window_s : float
        Length of a window, s.
    same_prompts : bool
        Whether the repeats serve the same prompts in the same order. A block is then fast in every repeat because of
        its prompts, and what it has in common with the same block of the other repeats is taken out: it is no noise.
    """
    repeats, blocks = rates.shape
    apart = rates / rates.mean(axis=1, keepdims=True) - 1
    freedom = repeats * (blocks - 1)
    if same_prompts and repeats > 1:
        apart = apart - apart.mean(axis=0)
        freedom = (repeats - 1) * (blocks - 1)
    return float((apart**2).sum()) / freedom * window_s / blocks, freedom


def shrunk(variances: ArrayLike, freedom: ArrayLike, concurrency: ArrayLike) -> list[Estimate]:
    """Return one arm's variances, each drawn towards the arm's line over log concurrency.

    How far is decided by the data: where the logarithms of the variances scatter about their line by no more than their
    degrees of freedom explain, the line is taken, and where places differ, each keeps its own (Smyth 2004).

    Parameters
    ----------
    variances, freedom, concurrency : array_like, shape (places,)
        Variances with their degrees of freedom, and where they were estimated.
    """
    from scipy.special import digamma, polygamma  # SciPy takes half a second to import

    own = np.maximum(np.asarray(variances, dtype=np.float64), LEAST)
    d, at = np.asarray(freedom, dtype=np.float64), np.log(np.asarray(concurrency, dtype=np.float64))
    columns = [np.ones(len(own)), at] if len(own) > 3 and len(np.unique(at)) > 2 else [np.ones(len(own))]
    design = np.stack(columns, axis=1)
    if len(own) <= design.shape[1]:
        return [Estimate(float(v), float(v * np.sqrt(2 / n))) for v, n in zip(own, d, strict=True)]
    logs = np.log(own) - digamma(d / 2) + np.log(d / 2)
    line = design @ np.linalg.lstsq(design, logs, rcond=None)[0]
    beyond = float(((logs - line) ** 2).sum() / (len(own) - design.shape[1]) - polygamma(1, d / 2).mean())
    borrowed = min(SURE, 2 * _trigamma_inverse(beyond)) if beyond > 0 else SURE
    prior = np.exp(line + digamma(borrowed / 2) - np.log(borrowed / 2))
    value = (borrowed * prior + d * own) / (borrowed + d)
    return [Estimate(float(v), float(v * np.sqrt(2 / (borrowed + n)))) for v, n in zip(value, d, strict=True)]


def _trigamma_inverse(value: float) -> float:
    from scipy.optimize import brentq
    from scipy.special import polygamma

    return float(np.exp(brentq(lambda log: float(polygamma(1, np.exp(log))) - value, -30.0, 30.0)))


def machine(apart: ArrayLike, explained: ArrayLike, repeats: ArrayLike) -> Estimate:
    """Return how far one arm's repeats lie apart beyond what texts and steps explain.

    A place counts by how well it can tell: where steps alone scatter widely, a machine's few percent are not seen. The
    machine is taken to differ alike at all of the arm's places.

    Parameters
    ----------
    apart, explained : array_like, shape (places,)
        Variance of a single repeat's log throughput as the repeats give it, and as the other components do.
    repeats : array_like, shape (places,)
        Two or more.
    """
    total, within, n = (np.asarray(column, dtype=np.float64) for column in (apart, explained, repeats))
    freedom, excess = n - 1, 0.0
    for _ in range(ROUNDS):
        weight = freedom / np.maximum(within + excess, LEAST) ** 2
        excess = max(0.0, float(np.average(total - within, weights=weight)))
    weight = freedom / np.maximum(within + excess, LEAST) ** 2
    return Estimate(excess, float(np.sqrt(2 / weight.sum())))
