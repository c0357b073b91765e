"""Advice as tables of text, for the terminal and for the book."""

from __future__ import annotations

import pandas as pd

from speclab.advice.base import Advice, ServedArm
from speclab.findings.pairs import OK
from speclab.lab import BASELINE

NOTHING = "–"


def policy(advice: Advice, *, with_speed: bool = True) -> pd.DataFrame:
    """Return the arm at each number of requests in flight, a row for each workload and one for the mix.

    With its speed-up where that is not 1; a ``?`` behind it where neither a gain nor a loss is shown.
    """
    at = sorted({served.concurrency for part in advice.parts for served in part.served})
    rows = []
    for part in advice.parts:
        by = {served.concurrency: _served(served, with_speed) for served in part.served}
        rows.append({"traffic": part.name, **{str(each): by.get(each, NOTHING) for each in at}})
    return pd.DataFrame(rows) if rows else pd.DataFrame({"no advice": [advice.why_not]})


def switches(advice: Advice) -> pd.DataFrame:
    """Return where to switch, a row for each change."""
    columns = ["traffic", "arm", "up to, in flight", "then", "back below", "equally fast at"]
    rows = [
        [
            *(part.name, change.below, str(change.high), change.above, str(change.low)),
            NOTHING if change.value is None else f"{change.value:.0f}",
        ]
        for part in advice.parts
        for change in part.changes
    ]
    return pd.DataFrame(rows, columns=columns)


def regret(advice: Advice) -> pd.DataFrame:
    """Return what each arm costs each workload if it serves everybody, least to most over the loads, in percent."""
    rows = []
    for arm in dict.fromkeys(row.arm for row in advice.regret):
        cells = {"one arm for all": arm}
        for part in advice.parts:
            costs = [100 * row.value for row in advice.regret if (row.arm, row.workload) == (arm, part.name)]
            ends = dict.fromkeys(f"{end(costs):.0f}" for end in (min, max)) if costs else (NOTHING,)
            cells[f"costs {part.name}, %"] = " to ".join(ends)
        rows.append(cells)
    return pd.DataFrame(rows)


def chosen_k(advice: Advice) -> pd.DataFrame:
    """Return the k of each drafter by workload and requests in flight, and which k are worth a run."""
    at = sorted({row.concurrency for row in advice.k})
    rows = []
    for drafter in dict.fromkeys(row.drafter for row in advice.k):
        wanted = advice.worth_measuring.get(drafter, ())
        for workload in dict.fromkeys(row.workload for row in advice.k if row.drafter == drafter):
            by = {row.concurrency: str(row.k) for row in advice.k if (row.drafter, row.workload) == (drafter, workload)}
            cells = {"drafter": drafter, "workload": workload, **{str(each): by.get(each, NOTHING) for each in at}}
            rows.append(cells | {"worth a run": " and ".join(f"k = {k}" for k in wanted) or NOTHING})
    return pd.DataFrame(rows)


def schedules(advice: Advice) -> pd.DataFrame:
    """Return vLLM's schedule for each kind of traffic that wants one."""
    rows = [
        [part.name, part.drafter, "[" + ", ".join(str(list(each)) for each in part.schedule) + "]"]
        for part in advice.parts
        if part.schedule is not None
    ]
    return pd.DataFrame(rows, columns=["traffic", "drafter", "schedule"])


def _served(served: ServedArm, with_speed: bool) -> str:
    speed = f" {served.speed_up:.2f}x" if with_speed and served.arm != BASELINE else ""
    return f"{served.arm}{speed}{'' if served.status == OK else '?'}"
