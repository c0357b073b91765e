"""A finding as a sentence: what was found, how sure it is, and what it means where there is no number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from speclab.findings.catalogue import BY_NAME
from speclab.findings.pairs import FAILED_CHECK, NOT_REACHED, OK

Row = Mapping[Any, Any]


def sentence(row: Row) -> str:
    """Return one row of findings as a sentence.

    Parameters
    ----------
    row : mapping
        A row of `speclab.findings.long_table.findings`.

    Returns
    -------
    str
        Never with a NaN in it: what is not known is said to be.
    """
    if row["finding"] == "crossover":
        return place(row) + _crossing(row)
    if row["status"] == FAILED_CHECK:
        failed = f"{place(row)}failed check: no repeat passed the checks that this requires"
        return f"{failed}." if pd.isna(row["value"]) else f"{failed}; they show {_number(row)}, which is excluded."
    if row["status"] != OK:
        return f"{place(row)}not resolved: {_why(row)}."
    return place(row) + (_speed_up(row) if BY_NAME[row["finding"]].unit == "x" else _plain(row))


def interval(row: Row, form: str = "{:.2f}") -> str:
    """Return the interval of a row as text, ``1.35 to 1.50``; empty where there is none."""
    if pd.isna(row["low"]) or pd.isna(row["high"]):
        return ""
    return f"{form.format(row['low'])} to {form.format(row['high'])}"


def crossing(row: Row) -> str:
    """Return where a speed-up falls to 1 in a few words, with the interval: ``29 (24 to 36)``, ``above 256``."""
    low, high = row["low"], row["high"]
    if row["status"] == OK:
        ends = ["before the first point" if pd.isna(low) else f"{low:.3g}"]
        ends.append("beyond the last point" if pd.isna(high) else f"{high:.3g}")
        return f"{row['value']:.3g}" + ("" if pd.isna(low) and pd.isna(high) else f" ({' to '.join(ends)})")
    if row["status"] == NOT_REACHED:
        return f"above {low:.0f}" if pd.notna(low) else f"below {high:.0f}"
    if pd.notna(low) and pd.notna(high):
        return f"not resolved ({low:.3g} to {high:.3g})"
    if pd.notna(low):
        return f"not resolved (after {low:.3g})"
    return f"not resolved (before {high:.3g})" if pd.notna(high) else "not resolved"


def _crossing(row: Row) -> str:
    low, high, points = row["low"], row["high"], int(row["n"])
    if row["status"] == OK:
        return f"the speed-up falls to 1 at {crossing(row)} requests in flight."
    if row["status"] == NOT_REACHED and pd.notna(low):
        return f"not reached: faster than the baseline up to {low:.0f} requests in flight, the most that were measured."
    if row["status"] == NOT_REACHED:
        return f"not reached: slower than the baseline from {high:.0f} requests in flight on, the fewest measured."
    if not points:
        return "not resolved: no point of the curve has a baseline beside it and passed its checks."
    undecided = f"not resolved: the {points} points that passed their checks do not decide where it crosses 1"
    if pd.notna(low):
        return f"{undecided}, only that it is after {low:.3g} in flight."
    return f"{undecided}, only that it is before {high:.3g} in flight." if pd.notna(high) else f"{undecided}."


def _speed_up(row: Row) -> str:
    value = f"{row['value']:.2f} times the baseline's speed"
    if not interval(row):
        return f"{value}; one repeat and no blocks to resample, so no interval."
    decided = "" if row["low"] > 1 or row["high"] < 1 else ", not distinguishable from 1"
    return f"{value} ({interval(row)}{decided})."


def _plain(row: Row) -> str:
    within = interval(row, "{:.4g}")
    return _number(row) + (f" ({within})." if within else ", without an interval.")


def _number(row: Row) -> str:
    return f"{row['value']:.4g} {row['unit']}".rstrip()


def _why(row: Row) -> str:
    if BY_NAME[row["finding"]].of == "pair" and pd.isna(row["value"]):
        return "no baseline at the same place, or it has no such figure"
    return "too little was measured, or the server does not offer it"


def place(row: Row) -> str:
    """Return where a row stands, with a colon behind it."""
    where = f"{row['arm']} on {row['workload']}"
    return f"{where}: " if pd.isna(row["concurrency"]) else f"{where} at {row['concurrency']:g} in flight: "
