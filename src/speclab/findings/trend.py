"""Whether the same text takes more steps in a fuller batch.

Cells at few requests in flight hold few answers, and so other texts than full ones; n-gram's acceptance differs from
text to text by more than anything the batch could do. So each prompt is held against itself.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from speclab.findings.pairs import FAILED_CHECK, NOT_RESOLVED, OK, state

PLACE = ["source", "arm", "workload"]
COLUMNS = [*PLACE, "value", "low", "high", "n", "status"]

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
        Rows of `speclab.metrics.summary.Summary`. Cells that failed a check have no say.

    Returns
    -------
    pd.DataFrame
        `COLUMNS`: `value` is the relative change over the whole range of concurrencies (0: none) with its 95%
        interval, `n` the prompts that it rests on.
    """
    if answers.empty:
        return pd.DataFrame(columns=COLUMNS)
    keys = [*PLACE, "concurrency", "repeat"]
    rows = answers.merge(cells[keys].assign(state=state(cells, "acceptance_trend")), on=keys, validate="many_to_one")
    found = []
    for place, of_place in rows.groupby(PLACE, sort=False):
        usable = of_place[of_place["state"] == OK]
        sums = usable.groupby(["prompt_id", "concurrency"], as_index=False)[["steps", "tokens"]].sum()
        otherwise = NOT_RESOLVED if len(usable) == len(of_place) else FAILED_CHECK
        found.append([*place, *_change(sums, otherwise)])
    return pd.DataFrame(found, columns=COLUMNS)


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
    margin = float(stats.t.ppf(0.975, prompts - 1)) * error
    span = float(doublings.max() - doublings.min())
    value, low, high = (float(np.expm1(span * part)) for part in (slope, slope - margin, slope + margin))
    return value, low, high, prompts, OK


def _mean_of_prompt(values: pd.Series[float], weight: pd.Series[float], prompt: pd.Series[str]) -> pd.Series[float]:
    sums: pd.Series[float] = (values * weight).groupby(prompt).transform("sum")
    return sums / weight.groupby(prompt).transform("sum")
