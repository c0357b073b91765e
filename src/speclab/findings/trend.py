"""Whether the same text takes more steps in a fuller batch, later in an answer, after a longer prompt.

Cells at few requests in flight hold few answers, and so other texts than full ones; n-gram's acceptance differs from
text to text by more than anything the batch could do. So each prompt is held against itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from speclab.findings.pairs import FAILED_CHECK, NOT_RESOLVED, OK, state
from speclab.findings.places import CURVE
from speclab.metrics.answers import PARTS

COLUMNS = [*CURVE, "value", "low", "high", "n", "status"]

Fit = Callable[[pd.DataFrame, str], tuple[float, float, float, int, str]]
"""Value, low, high, n and status from the sums of one arm and workload; the status where there are too few."""

FEWEST_PROMPTS = 3
"""Prompts answered at two or more concurrencies that a trend needs at least."""


def acceptance_trend(answers: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Return how tokens per step of the same prompts change from the lowest to the highest concurrency.

    Fitted: log(tokens / steps) = a level for each prompt + a slope for each doubling of the concurrency, weighted by
    steps. The interval is robust to the answers of one prompt being alike (clustered by prompt; Student's t with one
    degree of freedom less than there are prompts).

    Parameters
    ----------
    answers : pd.DataFrame
        `speclab.metrics.answers.answers_by_prompt` of each cell behind the cell's keys; arms that draft.
    cells : pd.DataFrame
        Rows of `speclab.metrics.summary.Summary`. Cells that failed a check are excluded.

    Returns
    -------
    pd.DataFrame
        `COLUMNS`: `value` is the relative change over the whole range of concurrencies (0: none) with its 95%
        interval, `n` the prompts that it rests on.
    """
    return _by_place(answers, cells, ["prompt_id", "concurrency"], ["steps", "tokens"], _change)


def acceptance_over_answer(answers: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Return how tokens per step change from the early part of an answer to its late part, the same answers.

    The parts are those of `speclab.metrics.answers`. Fitted: the mean over prompts of log(late / early tokens per
    step), weighted by steps; the interval is that of Student's t over prompts.

    Parameters
    ----------
    answers, cells : pd.DataFrame
        As for `acceptance_trend`.

    Returns
    -------
    pd.DataFrame
        `COLUMNS`: `value` is the relative change (0: none), `n` the prompts.
    """
    return _by_place(answers, cells, ["prompt_id"], list(PARTS), _late_against_early)


def acceptance_over_prompt(answers: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Return how tokens per step change with each doubling of the prompt's length, between prompts.

    Fitted: log(tokens / steps) = level + slope x log2(prompt tokens), weighted by steps; the interval is robust to
    prompts that scatter unlike each other (HC1; Student's t). Long prompts are other texts than short ones: this is
    what goes along with length in the lab's prompts, and not what length alone does.

    Parameters
    ----------
    answers, cells : pd.DataFrame
        As for `acceptance_trend`.

    Returns
    -------
    pd.DataFrame
        `COLUMNS`: `value` is the relative change with each doubling (0: none), `n` the prompts.
    """
    return _by_place(answers, cells, ["prompt_id", "prompt_tokens"], ["steps", "tokens"], _per_doubling)


TRENDS = (acceptance_trend, acceptance_over_answer, acceptance_over_prompt)
"""Each is a finding under its own name."""


def _by_place(answers: pd.DataFrame, cells: pd.DataFrame, by: list[str], sums: list[str], fit: Fit) -> pd.DataFrame:
    """Fit each arm and workload by itself, to the sums over its cells that passed."""
    if answers.empty or not {*by, *sums} <= set(answers.columns):
        return pd.DataFrame(columns=COLUMNS)
    keys = [*CURVE, "concurrency", "repeat"]
    rows = answers.merge(cells[keys].assign(state=state(cells, "acceptance_trend")), on=keys, validate="many_to_one")
    fits = []
    for place, of_place in rows.groupby(CURVE, sort=False):
        usable = of_place[of_place["state"] == OK]
        otherwise = NOT_RESOLVED if len(usable) == len(of_place) else FAILED_CHECK
        fits.append([*place, *fit(usable.groupby(by, as_index=False)[sums].sum(), otherwise)])
    return pd.DataFrame(fits, columns=COLUMNS)


def _late_against_early(sums: pd.DataFrame, otherwise: str) -> tuple[float, float, float, int, str]:
    there = sums[(sums["early_steps"] > 0) & (sums["late_steps"] > 0)]
    n = len(there)
    if n < FEWEST_PROMPTS:
        return np.nan, np.nan, np.nan, n, otherwise
    late, early = there["late_tokens"] / there["late_steps"], there["early_tokens"] / there["early_steps"]
    change = np.log(late / early)
    weight = 1 / (1 / there["late_steps"] + 1 / there["early_steps"])
    mean = float(np.average(change, weights=weight))
    pull = weight * (change - mean)
    error = float(np.sqrt((pull**2).sum() * n / (n - 1)) / weight.sum())
    return *_relative(mean, error, n - 1), n, OK


def _per_doubling(sums: pd.DataFrame, otherwise: str) -> tuple[float, float, float, int, str]:
    there = sums[sums["prompt_tokens"].notna() & (sums["prompt_tokens"] > 0)]
    n = len(there)
    if n <= FEWEST_PROMPTS or there["prompt_tokens"].nunique() < 2:
        return np.nan, np.nan, np.nan, n, otherwise
    weight, level = there["steps"].astype(float), np.log(there["tokens"] / there["steps"])
    doublings = np.log2(there["prompt_tokens"])
    x, y = (values - np.average(values, weights=weight) for values in (doublings, level))
    leverage = float((weight * x**2).sum())
    slope = float((weight * x * y).sum()) / leverage
    pull = weight * x * (y - slope * x)
    error = float(np.sqrt((pull**2).sum() * n / (n - 2)) / leverage)
    return *_relative(slope, error, n - 2), n, OK


def _relative(slope: float, error: float, freedom: int) -> tuple[float, float, float]:
    """Return a change of a logarithm and its 95% interval as relative changes."""
    from scipy import stats  # takes half a second, and most commands do not come here

    margin = float(stats.t.ppf(0.975, freedom)) * error
    return float(np.expm1(slope)), float(np.expm1(slope - margin)), float(np.expm1(slope + margin))


def _change(sums: pd.DataFrame, otherwise: str) -> tuple[float, float, float, int, str]:
    """Return value, low, high, n and status from a row for each prompt and concurrency."""
    weight = sums["steps"].astype(float)
    doublings = pd.Series(np.log2(sums["concurrency"]), index=sums.index)
    x = doublings - _mean_of_prompt(doublings, weight, sums["prompt_id"])
    level = pd.Series(np.log(sums["tokens"] / sums["steps"]), index=sums.index)
    y = level - _mean_of_prompt(level, weight, sums["prompt_id"])
    leverage = weight * x**2
    prompts = int((leverage.groupby(sums["prompt_id"]).sum() > 0).sum())
    if prompts < FEWEST_PROMPTS:
        return np.nan, np.nan, np.nan, prompts, otherwise
    total = float(leverage.sum())
    slope = float((weight * x * y).sum()) / total
    pull = (weight * x * (y - slope * x)).groupby(sums["prompt_id"]).sum()
    error = float(np.sqrt((pull**2).sum() * prompts / (prompts - 1))) / total
    span = float(doublings.max() - doublings.min())
    return *_relative(span * slope, span * error, prompts - 1), prompts, OK


def _mean_of_prompt(values: pd.Series[float], weight: pd.Series[float], prompt: pd.Series[str]) -> pd.Series[float]:
    sums: pd.Series[float] = (values * weight).groupby(prompt).transform("sum")
    return sums / weight.groupby(prompt).transform("sum")
