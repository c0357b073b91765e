"""What a spending will show: half-widths, which speed-ups will exclude 1, which crossovers will be closed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from speclab.budget.allocate import half_width, student
from speclab.budget.components import LEAST, Estimate
from speclab.budget.pilot import CellPilot
from speclab.budget.spend import Spending
from speclab.findings.intervals import LEVEL, generator
from speclab.findings.pairs import OK
from speclab.lab import BASELINE

LIKELY = 0.8
"""Share of forecasts that come out inside the range that is given; and the chance from which on something *will* be."""

CURVES = 4000
"""Curves that a crossover's chance is counted from: known to a percent."""


@dataclass(frozen=True, slots=True)
class SpeedUp:
    """The forecast of one speed-up.

    Attributes
    ----------
    arm, workload, concurrency
        Which one.
    window_s, baseline_window_s : float
        Length of each window, s.
    value : float
        As the pilot has it.
    half_width, low, high : float
        Of the 95% interval, as a share of the value, and the range in which `LIKELY` of such forecasts come out.
    excludes_1 : float
        Chance that the interval does not hold 1.
    passed : bool
        Whether the pilot's cells passed their checks.
    """

    arm: str
    workload: str
    concurrency: int
    window_s: float
    baseline_window_s: float
    value: float
    half_width: float
    low: float
    high: float
    excludes_1: float
    passed: bool


@dataclass(frozen=True, slots=True)
class CrossoverChance:
    """Chances that a crossover will be closed on both sides, and that the curve will be found on one side of 1."""

    arm: str
    workload: str
    points: int
    closed: float
    not_reached: float


@dataclass(frozen=True, slots=True)
class Flatness:
    """To what bound a change of acceptance over concurrency can be stated where there is none, with how many prompts.

    The pilot's own half-width and prompts stand beside it.
    """

    arm: str
    workload: str
    prompts: int
    bound: float
    pilot_prompts: int
    pilot_bound: float


def together(arm: Estimate, baseline: Estimate) -> Estimate:
    """Return the variance of a log speed-up."""
    return Estimate(arm.value + baseline.value, float(np.hypot(arm.doubt, baseline.doubt)))


def likely(variance: Estimate) -> tuple[float, float]:
    """Return the range of a variance: that of a chi-square with as many degrees of freedom as its doubt leaves."""
    from scipy import stats  # takes half a second, and most commands do not come here

    if variance.value <= LEAST or variance.doubt <= 0:
        return variance.value, variance.value
    freedom = max(1.0, 2 * (variance.value / variance.doubt) ** 2)
    tail = (1 - LIKELY) / 2
    low, high = (float(variance.value * freedom / stats.chi2.ppf(1 - share, freedom)) for share in (tail, 1 - tail))
    return low, high


def of_pilot(cell: CellPilot) -> Estimate:
    """Return the variance of a cell's own speed as the pilot knows it, of the workload."""
    repeats = 1 if cell.same_prompts else cell.repeats
    return cell.variance(cell.repeats, cell.window_s, cell.texts_served(repeats, cell.window_s))


def speed_ups(spending: Spending) -> list[SpeedUp]:
    """Return the forecast of each speed-up of a spending, in the pilot's order."""
    return [made for made, _, _ in _forecast(spending)]


def _forecast(spending: Spending) -> Iterator[tuple[SpeedUp, float, float]]:
    """Yield each forecast with the standard error of the log speed-up, and of that before it is measured again."""
    from scipy import stats

    repeats, places = spending.repeats, spending.pilot.by_place
    factor = student(repeats)
    for cell in spending.pilot.speed_ups:
        part = spending.shares.get(cell.where)
        if part is None or cell.arm not in part.window_s:
            continue
        base = places[cell.where][BASELINE]
        window_s, base_window_s = part.window_s[cell.arm], part.window_s[BASELINE]
        variance = together(cell.variance(repeats, window_s), base.variance(repeats, base_window_s))
        low, high = likely(variance)
        error = float(np.sqrt(variance.value))
        wide = float(np.sqrt(variance.value + together(of_pilot(cell), of_pilot(base)).value))
        log = cell.log_speed - base.log_speed
        # where the next measurement may come out, against its own interval
        edge = factor * error
        chance = float(stats.norm.sf((edge - log) / wide) + stats.norm.cdf((-edge - log) / wide)) if wide else 1.0
        yield SpeedUp(
            cell.arm, *cell.where, window_s, base_window_s, float(np.exp(log)),
            half_width=half_width(variance.value, repeats), low=half_width(low, repeats),
            high=half_width(high, repeats), excludes_1=chance, passed=cell.passed and base.passed,
        ), error, wide  # fmt: skip


def crossings(spending: Spending) -> list[CrossoverChance]:
    """Return the chances of each crossover, from curves drawn about the pilot's.

    Closed: an interval above 1 stands below (at fewer requests in flight than) an interval under 1. Not reached: all
    intervals lie on one side. A curve needs two concurrencies at least.
    """
    curves: dict[tuple[str, str], list[tuple[SpeedUp, float, float]]] = {}
    for row in _forecast(spending):
        curves.setdefault((row[0].arm, row[0].workload), []).append(row)
    made = []
    for (arm, workload), points in curves.items():
        if len(points) < 2:
            continue
        points.sort(key=lambda row: row[0].concurrency)
        logs, errors, wide = (
            np.array(column) for column in zip(*((np.log(one.value), e, w) for one, e, w in points), strict=True)
        )
        normal = generator(arm, workload).standard_normal((CURVES, len(points)))
        drawn, edges = logs + wide * normal, student(spending.repeats) * errors
        above, below = drawn > edges, drawn < -edges
        was_above = np.logical_or.accumulate(above, axis=1)
        closed = (was_above[:, :-1] & below[:, 1:]).any(axis=1)
        one_side = above.all(axis=1) | below.all(axis=1)
        made.append(CrossoverChance(arm, workload, len(points), float(closed.mean()), float(one_side.mean())))
    return made


def flatness(spending: Spending, findings: pd.DataFrame) -> list[Flatness]:
    """Return to what bound the flatness of each drafter's acceptance can be stated.

    What acceptance does over concurrency is asked of the same prompts at the lowest and at the highest, and the pilot's
    interval is narrowed by the root of how many more prompts both ends will hold.

    Parameters
    ----------
    findings : pd.DataFrame
        `speclab.findings.long_table.COLUMNS`: of these, the rows of ``acceptance_trend``.
    """
    from scipy import stats

    made = []
    trends = findings[(findings["finding"] == "acceptance_trend") & (findings["status"] == OK)]
    for row in trends.to_dict("records"):
        ends = _ends(spending, str(row["arm"]), str(row["workload"]))
        n, low, high = int(row["n"]), float(row["low"]), float(row["high"])
        if len(ends) < 2 or n < 2 or not (np.isfinite(low) and np.isfinite(high) and low > -1):
            continue
        served = int(min(cell.texts_served(spending.repeats, window_s) for cell, window_s in (ends[0], ends[-1])))
        own = float(np.log1p(high) - np.log1p(low)) / 2
        quantile = (1 + LEVEL) / 2
        factor = stats.t.ppf(quantile, max(served - 1, 1)) / stats.t.ppf(quantile, n - 1)
        bound = own * factor * np.sqrt(n / served) if served > 1 else np.inf
        made.append(
            Flatness(str(row["arm"]), str(row["workload"]), served, float(np.expm1(bound)), n, float(np.expm1(own)))
        )
    return made


def _ends(spending: Spending, arm: str, workload: str) -> Sequence[tuple[CellPilot, float]]:
    """Return the cells of an arm that are measured, with their windows, by concurrency."""
    rows = [
        (cell, spending.shares[cell.where].window_s[arm])
        for cell in spending.pilot.cells
        if cell.arm == arm and cell.workload == workload and cell.where in spending.shares
        and arm in spending.shares[cell.where].window_s
    ]  # fmt: skip
    return sorted(rows, key=lambda row: row[0].concurrency)
