"""How often intervals held the truth, over many labs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from speclab.findings.long_table import with_draws
from speclab.findings.pairs import OK
from speclab.interval_coverage.fast_lab import ARM, FastLab
from speclab.lab import BASELINE
from speclab.metrics.acceptance import wilson

FINDINGS = ("speed_up", "break_even_length", "tokens_per_step", "crossover")

COLUMNS = ["finding", "source", "concurrency", "truth", "value", "low", "high", "status"]


Truth = dict[tuple[str, float], float]
"""The true value of each finding by its `place`."""


def place(finding: str, concurrency: float) -> tuple[str, float]:
    """Return the key of a true value; a crossover, which has no concurrency, is under 0."""
    return finding, 0.0 if np.isnan(concurrency) else concurrency


def truth_of(lab: FastLab) -> Truth:
    """Return the true values of a lab in closed form."""
    ratio = (1 + lab.k * lab.acceptance) / lab.true_speed_up
    values: Truth = {place("crossover", np.nan): lab.true_crossover if lab.true_crossover is not None else np.nan}
    for concurrency, speed_up, break_even in zip(lab.concurrencies, lab.true_speed_up, ratio, strict=True):
        values["speed_up", concurrency], values["break_even_length", concurrency] = float(speed_up), float(break_even)
        values["tokens_per_step", concurrency] = 1 + lab.k * lab.acceptance
    return values


def intervals(lab: FastLab, seeds: Iterable[int], blocks: int) -> pd.DataFrame:
    """Return every interval of many labs beside the truth, `COLUMNS`: what `speclab findings` would have printed.

    Parameters
    ----------
    lab : FastLab
        The lab with the known truth.
    seeds : iterable of int
        One lab each; a row's ``source`` is its seed.
    blocks : int
        Blocks by which each window is resampled.
    """
    labs = [tuple(table.assign(source=str(seed)) for table in lab.tables(seed, blocks)) for seed in seeds]
    cells, parts = (pd.concat(tables, ignore_index=True) for tables in zip(*labs, strict=True))
    # a source has its own baseline and its own repeats, so one table holds many labs
    table, _ = with_draws(cells, pd.DataFrame(), {BASELINE: 0, ARM: lab.k}, blocks=parts, resampled_in=blocks)
    return beside(table[table["arm"] == ARM], truth_of(lab))


def beside(table: pd.DataFrame, truth: Truth) -> pd.DataFrame:
    """Return the findings that have a true value, beside that value, `COLUMNS`."""
    rows = table[table["finding"].isin(FINDINGS)]
    true = [truth[place(f, c)] for f, c in zip(rows["finding"], rows["concurrency"], strict=True)]
    return rows.assign(truth=true)[COLUMNS].reset_index(drop=True)


def held(rows: pd.DataFrame) -> pd.DataFrame:
    """Return how often the truth lay inside, for each finding.

    Parameters
    ----------
    rows : pd.DataFrame
        As `intervals` returns them.

    Returns
    -------
    pd.DataFrame
        ``finding, intervals, held, share, share_low, share_high, width``: `share` with its 95% Wilson interval
        (intervals of one seed at several concurrencies count as several), `width` the median of (high - low) / truth.
        A bound of a crossover that is null lies beyond the measured range and holds everything there. "Not reached" and
        "not resolved" count: they make a claim as well, in the bounds that they give.
    """
    is_crossover = rows["finding"] == "crossover"
    low = rows["low"].fillna(-np.inf).where(is_crossover, rows["low"])
    high = rows["high"].fillna(np.inf).where(is_crossover, rows["high"])
    inside = (low <= rows["truth"]) & (rows["truth"] <= high)
    outcomes = rows.assign(
        held=inside, width=(rows["high"] - rows["low"]) / rows["truth"], resolved=rows["status"] == OK
    )
    table = outcomes.groupby("finding", sort=False).agg(
        intervals=("held", "size"), held=("held", "sum"), resolved=("resolved", "mean"), width=("width", "median")
    )
    share, below, above = wilson(table["held"].to_numpy(float), table["intervals"].to_numpy(float))
    return table.assign(share=share, share_low=below, share_high=above).reset_index()
