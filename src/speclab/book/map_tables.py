"""The map as a table for print, and its crossovers in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

NONE = "–"


def printed(rows: pd.DataFrame, names: Mapping[str, str], k: int, at: Sequence[int]) -> pd.DataFrame:
    """Return the map as text: a row for each device, context and acceptance.

    Parameters
    ----------
    rows : DataFrame
        `speclab.asking.survey.survey`.
    names : mapping of str to str
        Device to its name for the reader.
    k : int
        Whose speed-ups are printed.
    at : sequence of int
        Concurrencies of these; a dash where memory is full before.

    Returns
    -------
    DataFrame
        Speed-ups at `at` with k draft positions, and the crossover of each k.
    """
    made = []
    for (device, context, acceptance), group in rows.groupby(["device", "context", "acceptance"], sort=False):
        shown = group[group["k"] == k].set_index("concurrency")["speed_up"]
        made.append(
            {"GPU": names[str(device)], "context": f"{context:,.0f}", "acceptance": f"{acceptance}"}
            | {f"at {each}": f"{shown[each]:.2f}" if each in shown.index else NONE for each in at}
            | {f"crossover, k={each}": crossover(one.iloc[0]) for each, one in group.groupby("k")}
        )
    return pd.DataFrame(made)


def crossover(row: Mapping[str, Any] | pd.Series[Any]) -> str:
    """Return a crossover with its interval in words, from one row of a survey."""
    if row["status"] == "always below":
        return "never pays"
    if pd.isna(row["crossover"]) or row["crossover"] > row["most_in_flight"]:
        return f"pays to {row['most_in_flight']:.0f}, memory full"
    return f"{row['crossover']:.0f} ({interval(row)})"


def interval(row: Mapping[str, Any] | pd.Series[Any]) -> str:
    """Return between which crossovers nine of ten draws lie, from one row of a survey."""
    low = "1 or fewer" if pd.isna(row["crossover_low"]) else f"{row['crossover_low']:.0f}"
    high = "more than is asked for" if pd.isna(row["crossover_high"]) else f"{row['crossover_high']:.0f}"
    return f"{low} to {high}"
