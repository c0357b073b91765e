"""The repeats of a place taken together: one value with its interval for each finding."""

from __future__ import annotations

import numpy as np
import pandas as pd

from speclab.findings.catalogue import BY_NAME, CATALOGUE
from speclab.findings.intervals import Draws, bounds, of_repeats
from speclab.findings.pairs import FAILED_CHECK, NOT_RESOLVED, OK
from speclab.findings.places import CELL, Key
from speclab.findings.spreads import Spreads, base_of

PLACES = ["finding", *CELL]


def averaged(long: pd.DataFrame, spreads: Spreads) -> tuple[pd.DataFrame, dict[Key, Draws]]:
    """Return the repeats of each cell and finding as one row, and its resampled values.

    Parameters
    ----------
    long : pd.DataFrame
        A row for each finding, place and repeat: `CELL`, ``finding, value, weight, base, state``; ``base`` is what a
        difference was taken from, null for what is none.
    spreads : Spreads
        Resampled deviations; where a finding has none, its repeats give the interval (Student's t, two or more).

    Returns
    -------
    table : pd.DataFrame
        ``finding``, `CELL`, ``value, low, high, n, status``. Repeats that passed count alone where there is one;
        otherwise the value is shown without an interval.
    draws : dict
        Resampled values of the rows that were resampled, shape (draws,), by (finding, source, arm, workload,
        concurrency).
    """
    passed, there = long["state"] == OK, long["value"].notna()
    any_good = (passed & there).groupby([long[key] for key in PLACES]).transform("any")
    used = long[there & (passed | ~any_good)]
    sums = used.assign(over=used["value"] * used["weight"]).groupby(PLACES, sort=False)
    standing = long.assign(failed=~passed, good=passed & there).groupby(PLACES, sort=False)
    table = standing.agg(failed=("failed", "any"), good=("good", "any")).join(
        sums.agg(over=("over", "sum"), under=("weight", "sum"), base=("base", "mean"), n=("value", "size"))
    )
    otherwise = table["failed"].map({True: FAILED_CHECK, False: NOT_RESOLVED})
    table = table.assign(
        value=table["over"] / table["under"],
        n=table["n"].fillna(0),
        status=otherwise.where(~table["good"], OK),
        low=np.nan,
        high=np.nan,
    )
    repeats: dict[Key, list[float]] = {}
    for *place, value in zip(*(used[name].tolist() for name in [*PLACES, "value"]), strict=True):
        repeats.setdefault(tuple(place), []).append(value)
    draws: dict[Key, Draws] = {}
    ends = []
    for key, value, base, good in zip(table.index, table["value"], table["base"], table["good"], strict=True):
        made = _draws(key, value, base, spreads) if good else None
        if made is not None:
            draws[key] = made
            ends.append(bounds(made))
        else:
            ends.append(_by_repeats(value, np.array(repeats[key])) if good else (np.nan, np.nan))
    table["low"], table["high"] = zip(*ends, strict=True) if ends else ((), ())
    return table.reset_index()[[*PLACES, "value", "low", "high", "n", "status"]], draws


def _draws(key: Key, value: float, base: float, spreads: Spreads) -> Draws | None:
    name, place = str(key[0]), key[1:]
    finding = BY_NAME[name]
    if not finding.less:
        deviation = spreads.by_key.get(key)
        return None if deviation is None else value * np.exp(deviation)
    as_ratio = next(other.name for other in CATALOGUE if other.over == finding.less)
    ratio, theirs = (spreads.by_key.get((side, *place)) for side in (as_ratio, base_of(finding)))
    if ratio is None or theirs is None:
        return None
    difference: Draws = (value + base) * np.exp(theirs + ratio) - base * np.exp(theirs)
    return difference


def _by_repeats(value: float, repeats: Draws) -> tuple[float, float]:
    """Return the interval that repeats give about a value; of a value that can only be positive, in its logarithm."""
    if len(repeats) and repeats.min() > 0:
        low, high = of_repeats(np.log(repeats))
        middle = float(np.log(repeats).mean())
        return value * float(np.exp(low - middle)), value * float(np.exp(high - middle))
    return of_repeats(repeats)
