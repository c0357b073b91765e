"""What speculation has to return."""

from __future__ import annotations

import pandas as pd


def break_even_length(pairs: pd.DataFrame) -> pd.Series[float]:
    """Return step time over the baseline's step time: the tokens per step below which speculation loses.

    To be held against `tokens_per_step`, never against the acceptance length that a server reports: the step time is a
    mean over all steps, drafted or not.
    """
    return pairs["step_time"] / pairs["step_time_baseline"]
