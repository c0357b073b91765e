"""What one setting for everybody costs, against the best arm for each workload."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from speclab.findings.speeds import MIX, Arms, Places, Speed, together
from speclab.lab import BASELINE

COLUMNS = ["arm", "workload", "concurrency", "value", "low", "high", "best"]


def regret(places: Places, mix: Mapping[float, Arms], parts: Mapping[float, Mapping[str, float]]) -> pd.DataFrame:
    """Return the throughput that each arm, served to everybody, gives away.

    Parameters
    ----------
    places : mapping
        Speed-ups by workload and concurrency (`speclab.findings.speeds.speeds`).
    mix : mapping
        Those of the mixed traffic (`speclab.findings.speeds.mixed`).
    parts : mapping
        By concurrency: each workload's part of the baseline's time in the mix (`speclab.findings.speeds.parts_of`).

    Returns
    -------
    pd.DataFrame
        `COLUMNS`: `value` is 1 less the arm's throughput over the fastest arm's (``best``; the baseline is one), with
        its 95% interval. For the mix the fastest is each workload on its own best arm.
    """
    rows = []
    for workload, by_concurrency in places.items():
        for concurrency, arms in by_concurrency.items():
            best = _best(arms)
            rows += [_row(arm, workload, concurrency, speed, arms[best], best) for arm, speed in arms.items()]
    for concurrency, arms in mix.items():
        best_of = {workload: _best(places[workload][concurrency]) for workload in parts[concurrency]}
        apart = together(
            {workload: places[workload][concurrency][best] for workload, best in best_of.items()}, parts[concurrency]
        )
        named = ", ".join(dict.fromkeys(best_of.values()))
        rows += [_row(arm, MIX, concurrency, speed, apart, named) for arm, speed in arms.items()]
    return pd.DataFrame(rows, columns=COLUMNS)


def _best(arms: Arms) -> str:
    return max(arms, key=lambda arm: (arms[arm].value, arm == BASELINE))


def _row(arm: str, workload: str, concurrency: float, speed: Speed, fastest: Speed, best: str) -> list[object]:
    quotient = speed.over(fastest)
    low, high = quotient.interval
    return [arm, workload, concurrency, 1 - quotient.value, 1 - high, 1 - low, best]
