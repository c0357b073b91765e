"""The two readings of n-gram's cost: from the reported acceptance length, and from the steps themselves.

Lab 9 (report), section 05, gives an iteration of 13.56 ms and a break-even of 2.23 tokens. 13.56 is what time per token
(6.09 ms x 1.113, its loss of about 10%) times the reported 2.00 tokens comes to. If that 2.00 holds only for steps that
had a draft, then neither the iteration nor the threshold is what it says. Both are printed here beside the measured
ones.
"""

from __future__ import annotations

import pandas as pd


def implied_step_time(pairs: pd.DataFrame) -> pd.Series[float]:
    """Return time per output token x reported acceptance length, ms: a step's time, if each step had a draft."""
    return pairs["time_per_output_token"] * pd.to_numeric(pairs["reported_acceptance_length"])


def implied_break_even_length(pairs: pd.DataFrame) -> pd.Series[float]:
    """Return `implied_step_time` / the baseline's time per output token: the report's threshold, tokens."""
    return implied_step_time(pairs) / pairs["time_per_output_token_baseline"]


READINGS = {
    "draft_coverage": ("steps with a draft", "both"),
    "reported_acceptance_length": ("tokens per drafted step, by the counters", "the counters'"),
    "implied_step_time": ("a step, if each had a draft", "the counters'"),
    "implied_break_even_length": ("break-even, if each step had a draft", "the counters'"),
    "tokens_per_step": ("tokens per step, all steps", "the steps'"),
    "step_time": ("a step, by its events", "the steps'"),
    "break_even_length": ("break-even, by the steps", "the steps'"),
    "speed_up": ("speed-up", "both"),
}
"""Each figure that the two readings need, in words, and whose reading it belongs to."""


def side_by_side(
    table: pd.DataFrame, arm: str, concurrency: float, published: pd.DataFrame, published_arm: str
) -> pd.DataFrame:
    """Return both readings of an arm at one concurrency, with what Lab 9 published at one request in flight.

    Parameters
    ----------
    table : pd.DataFrame
        Findings, as `speclab.findings.table.findings` makes them.
    arm : str
        Name of the arm.
    concurrency : float
        Requests in flight.
    published : pd.DataFrame
        As `speclab.replications.published.read` gives it.
    published_arm : str
        Its name there.

    Returns
    -------
    pd.DataFrame
        A row for each of `READINGS` and workload: ``finding, words, reading, workload, value, low, high, status, unit,
        published``. The published figures are those at one request in flight, whatever `concurrency` is; null where
        there is none.
    """
    rows = table[(table["arm"] == arm) & (table["concurrency"] == concurrency) & table["finding"].isin(READINGS)]
    stated = published[(published["arm"] == published_arm) & (published["concurrency"] == 1)]
    known = stated.dropna(subset=["finding"]).set_index(["finding", "workload"])["value"]
    keys = pd.MultiIndex.from_frame(rows[["finding", "workload"]])
    made = rows.assign(
        words=rows["finding"].map(lambda finding: READINGS[finding][0]),
        reading=rows["finding"].map(lambda finding: READINGS[finding][1]),
        published=known[~known.index.duplicated()].reindex(keys).to_numpy(),
    )
    order = made["finding"].map({finding: index for index, finding in enumerate(READINGS)})
    columns = ["finding", "words", "reading", "workload", "value", "low", "high", "status", "unit", "published"]
    return made.assign(order=order).sort_values("order", kind="stable")[columns].reset_index(drop=True)


def readings(table: pd.DataFrame, arm: str) -> pd.DataFrame:
    """Return both readings of one arm side by side.

    Parameters
    ----------
    table : pd.DataFrame
        Findings, as `speclab.findings.table.findings` makes them.
    arm : str
        Name of the arm.

    Returns
    -------
    pd.DataFrame
        A row for each source, workload and concurrency; a column for each of ``draft_coverage``; the report's reading
        (``reported_acceptance_length``, ``implied_step_time``, ``implied_break_even_length``); the steps' own
        (``tokens_per_step``, ``step_time``, ``break_even_length``); and ``speed_up``, on which both agree.
    """
    columns = list(READINGS)
    rows = table[(table["arm"] == arm) & table["finding"].isin(columns)]
    keys = ["source", "workload", "concurrency"]
    wide = rows.pivot(index=keys, columns="finding", values="value").reindex(columns=columns)
    wide.columns.name = None
    return wide.reset_index()
