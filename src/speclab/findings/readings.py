"""The two readings of a draft's cost: from the reported acceptance length, and from the steps themselves.

Time per token times the reported length is a step's time only if each step had a draft. Where the reported length holds
only for steps that had one (`speclab.metrics.acceptance.reported_acceptance_length`), neither that step time nor the
break-even that follows from it is what it says. Both readings are printed side by side.
"""

from __future__ import annotations

import pandas as pd

from speclab.findings.catalogue import BY_NAME

READINGS = {
    "draft_coverage": "both",
    "reported_acceptance_length": "the counters'",
    "implied_step_time": "the counters'",
    "implied_break_even_length": "the counters'",
    "tokens_per_step": "the steps'",
    "step_time": "the steps'",
    "break_even_length": "the steps'",
    "speed_up": "both",
}
"""The figures that the two readings need, in the order of the table, and whose reading each belongs to."""


def side_by_side(
    table: pd.DataFrame, arm: str, concurrency: float, published: pd.DataFrame, published_arm: str
) -> pd.DataFrame:
    """Return both readings of an arm at one concurrency, with what was published for one request in flight.

    Parameters
    ----------
    table : pd.DataFrame
        Findings, as `speclab.findings.long_table.findings` makes them.
    arm : str
        Name of the arm.
    concurrency : float
        Requests in flight.
    published : pd.DataFrame
        ``arm, finding, workload, concurrency, value``.
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
        words=rows["finding"].map(lambda finding: BY_NAME[finding].words),
        reading=rows["finding"].map(READINGS),
        published=known[~known.index.duplicated()].reindex(keys).to_numpy(),
    )
    order = made["finding"].map({finding: index for index, finding in enumerate(READINGS)})
    columns = ["finding", "words", "reading", "workload", "value", "low", "high", "status", "unit", "published"]
    return made.assign(order=order).sort_values("order", kind="stable")[columns].reset_index(drop=True)
