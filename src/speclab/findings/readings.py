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
    columns = [
        "draft_coverage",
        "reported_acceptance_length",
        "implied_step_time",
        "implied_break_even_length",
        "tokens_per_step",
        "step_time",
        "break_even_length",
        "speed_up",
    ]
    rows = table[(table["arm"] == arm) & table["finding"].isin(columns)]
    keys = ["source", "workload", "concurrency"]
    wide = rows.pivot(index=keys, columns="finding", values="value").reindex(columns=columns)
    wide.columns.name = None
    return wide.reset_index()
