"""Which arm to serve with, from the speed-ups alone."""

from __future__ import annotations

import pandas as pd

from speclab.findings.pairs import OK
from speclab.lab import BASELINE


def policy(findings: pd.DataFrame) -> pd.DataFrame:
    """Return the fastest arm for each workload and concurrency; the baseline where no arm beats it.

    Parameters
    ----------
    findings : pd.DataFrame
        As `speclab.findings.table.findings` makes them.

    Returns
    -------
    pd.DataFrame
        ``workload, concurrency, arm, speed_up``; the baseline's speed-up is 1. Cells that failed a check have no say.
    """
    rows = findings[(findings["finding"] == "speed_up") & (findings["status"] == OK)]
    places = rows[["workload", "concurrency"]].drop_duplicates().assign(arm=BASELINE, value=1.0)
    candidates = pd.concat([places, rows[["workload", "concurrency", "arm", "value"]]], ignore_index=True)
    best = candidates.loc[candidates.groupby(["workload", "concurrency"])["value"].idxmax()]
    return best.rename(columns={"value": "speed_up"}).reset_index(drop=True)
