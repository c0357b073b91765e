"""How much faster than the baseline; the two kinds of mean, both named."""

from __future__ import annotations

import pandas as pd


def speed_up(pairs: pd.DataFrame) -> pd.Series[float]:
    """Return the ratio of system throughputs: pooled by token, so a long answer weighs more than a short one.

    Parameters
    ----------
    pairs : pd.DataFrame
        As `speclab.findings.pairs.with_baseline` makes it.
    """
    return pairs["system_throughput"] / pairs["system_throughput_baseline"]


def speed_up_mean_of_requests(pairs: pd.DataFrame) -> pd.Series[float]:
    """Return the ratio of user throughputs: each request weighs the same.

    A few requests that speculate very well lift this mean above `speed_up`; a comparison with published figures must
    use the mean that they use.
    """
    return pairs["user_throughput"] / pairs["user_throughput_baseline"]
