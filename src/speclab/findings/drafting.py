"""What speculation adds to a step."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd


def drafting_time(pairs: pd.DataFrame) -> pd.Series[float]:
    """Return step time less the baseline's step time at the same concurrency, ms.

    Everything that the arm adds: drafting, the verification of k more tokens a row, lost overlap. At one request in
    flight the verification is nearly free and this is the cost of drafting (Lab 9 (report), section 04); at many it
    is not.
    """
    return pairs["step_time"] - pairs["step_time_baseline"]


def drafting_time_per_position(pairs: pd.DataFrame, k_by_arm: Mapping[str, int]) -> pd.Series[float]:
    """Return `drafting_time` / k, ms; null for an arm without drafts."""
    k = pairs["arm"].map(dict(k_by_arm)).astype(float)
    return drafting_time(pairs) / k.where(k > 0, np.nan)
