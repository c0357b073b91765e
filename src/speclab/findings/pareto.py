"""Which of several configurations no other one beats."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

Better = Literal["higher", "lower"]


def on_front(x: pd.Series, y: pd.Series, better_x: Better, better_y: Better) -> pd.Series:
    """Return which points stand on the Pareto front of two metrics.

    A point stands on it when no other is at least as good in both metrics and better in one; of equal points all do. A
    point that lacks a value does not, and beats none.

    Parameters
    ----------
    x, y : pd.Series
        The two metrics of the same points, shape (points,), on one index.
    better_x, better_y : {'higher', 'lower'}
        Which direction is the better one.

    Returns
    -------
    pd.Series
        Booleans on the same index.
    """
    gains = np.column_stack(
        [
            values.to_numpy(dtype=float) * (1 if better == "higher" else -1)
            for values, better in ((x, better_x), (y, better_y))
        ]
    )
    ahead = gains[None, :, :] - gains[:, None, :]  # [i, j]: by how much j is better than i
    beaten = ((ahead >= 0).all(axis=2) & (ahead > 0).any(axis=2)).any(axis=1)
    return pd.Series(~beaten & ~np.isnan(gains).any(axis=1), index=x.index)
