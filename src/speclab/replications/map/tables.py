"""The map as a table for print, and its crossovers in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

NONE, NO_BREAK = "–", "\u00a0"


def printed(rows: pd.DataFrame, k: int, at: Sequence[int]) -> pd.DataFrame:
    """Return the map as text: a row for each device, context and acceptance.

    Parameters
    ----------
    rows : DataFrame
        `speclab.predict.survey.survey`.
    k : int
        The k whose speed-ups are printed.
    at : sequence of int
        Concurrencies of these; a dash where memory is full earlier.

    Returns
    -------
    DataFrame
        Speed-ups at `at` with k draft positions, and the crossover of each k; ``α`` is the acceptance's name.
    """
    printed_rows = []
    for (device, context, acceptance), group in rows.groupby(["device", "context", "acceptance"], sort=False):
        shown = group[group["k"] == k].set_index("concurrency")["speed_up"]
        printed_rows.append(
            {"GPU": str(device).upper(), "context": f"{context:,.0f}", "α": str(acceptance)}
            | {
                f"at{NO_BREAK}{concurrency}": f"{shown[concurrency]:.2f}" if concurrency in shown.index else NONE
                for concurrency in at
            }
            | {f"k={positions}": crossover(of_k.iloc[0]) for positions, of_k in group.groupby("k")}
        )
    return pd.DataFrame(printed_rows)


def crossover(row: Mapping[str, Any] | pd.Series[Any]) -> str:
    """Return a crossover with its interval, from one row of a survey; ``over n`` where n fill the memory first.

    An end that takes more requests than memory holds is left open, like one that is not reached at all. Spaces are
    no-break, so that a line of the table is not wrapped.
    """
    if row["status"] == "always below":
        return "never"
    if pd.isna(row["crossover"]) or row["crossover"] > row["most_in_flight"]:
        return f"over{NO_BREAK}{row['most_in_flight']:.0f}"
    low, high = (_end(row[name], row["most_in_flight"]) for name in ("crossover_low", "crossover_high"))
    ends = {(True, True): f"{low}–{high}", (True, False): f"from {low}", (False, True): f"to {high}"}
    between = ends.get((low is not None, high is not None), "any")
    return f"{row['crossover']:.0f} ({between})".replace(" ", NO_BREAK)


def _end(value: float | None, most: float) -> str | None:
    return None if value is None or not value <= most else f"{value:.0f}"
