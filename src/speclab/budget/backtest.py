"""What two of a lab's repeats forecast for all of them, beside what all of them gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import pandas as pd

from speclab.budget.allocate import half_width
from speclab.budget.estimate import pilot
from speclab.budget.forecast import together
from speclab.budget.pilot import CellPilot
from speclab.budget.reading import prompt_counts
from speclab.errors import UserError
from speclab.lab import BASELINE
from speclab.results import Results

FEWEST_REPEATS = 3
"""Repeats that a backtest needs: two that forecast, and one that is left out."""

NEAR = 1.5
"""A forecast within this factor of what was reached is called near."""

WITHIN = 1.96
"""Forecast standard errors in which 95% of the repeats that were left out should lie."""


@dataclass(frozen=True, slots=True)
class Tested:
    """One speed-up, forecast by all repeats but one in turn.

    Attributes
    ----------
    arm, workload, concurrency
        Which one.
    forecast : float
        Half-width of the interval as the repeats serve their prompts: without the texts' variance where all of them
        serve the same. The mean over the repeats that are left out.
    of_workload : float
        The same with the texts' variance.
    reached : float
        Half-width of the lab's own interval from all repeats, as a share of the value.
    distances : tuple of float
        How far each repeat lay from the mean of the others, in forecast standard errors.
    same_prompts : bool
        Whether the repeats serve the same prompts.
    """

    arm: str
    workload: str
    concurrency: int
    forecast: float
    of_workload: float
    reached: float
    distances: tuple[float, ...]
    same_prompts: bool


def of(results: Results, prompts_of_each: int | None = None) -> list[Tested]:
    """Return the backtest of a lab's results.

    Raises
    ------
    UserError
        The lab has fewer than `FEWEST_REPEATS` repeats, or what `speclab.budget.estimate.pilot` says.
    """
    lab, tables = results.lab, results.tables
    repeats = sorted(tables.cells.loc[tables.cells["status"] == "ok", "repeat"].unique().tolist())
    if len(repeats) < FEWEST_REPEATS:
        raise UserError(
            f"the lab has {len(repeats)} finished repeats",
            f"a backtest leaves one out and needs {FEWEST_REPEATS}: run the lab with --repeats {FEWEST_REPEATS}",
        )
    counts = prompt_counts(lab, prompts_of_each)
    made: dict[tuple[str, str, int], list[tuple[float, float, float]]] = {}
    whole = _cells(pilot(tables.cells, tables.blocks, tables.answers, counts, lab.phases).cells)
    for left_out in repeats:
        cells, blocks, answers = (_without(table, left_out) for table in (tables.cells, tables.blocks, tables.answers))
        others = _cells(pilot(cells, blocks, answers, counts, lab.phases).cells)
        last = _speeds(tables.cells[tables.cells["repeat"] == left_out])
        for place, cell in others.items():
            base = others[BASELINE, *cell.where]
            if cell.arm == BASELINE or place not in last or (BASELINE, *cell.where) not in last or place not in whole:
                continue
            total = whole[place].repeats
            forecast = _half_width(cell, base, total, texts=not cell.same_prompts)
            of_workload = _half_width(cell, base, total, texts=True)
            off = last[place] - last[BASELINE, *cell.where] - (cell.log_speed - base.log_speed)
            made.setdefault(place, []).append((forecast, of_workload, off / _error(cell, base)))
    reached = {
        (row["arm"], row["workload"], int(row["concurrency"])): (row["high"] - row["low"]) / 2 / row["value"]
        for row in results.ok_rows("speed_up").to_dict("records")
    }
    tested = []
    for place, rows in made.items():
        forecasts, of_workloads, distances = zip(*rows, strict=True)
        width = float(reached.get(place, np.nan))
        tested.append(
            Tested(
                *place,
                float(np.mean(forecasts)),
                float(np.mean(of_workloads)),
                width,
                distances,
                whole[place].same_prompts,
            )
        )
    return tested


def _without(table: pd.DataFrame, repeat: int) -> pd.DataFrame:
    return table[table["repeat"] != repeat] if len(table) else table


def _cells(cells: Sequence[CellPilot]) -> dict[tuple[str, str, int], CellPilot]:
    return {(cell.arm, *cell.where): cell for cell in cells}


def _speeds(cells: pd.DataFrame) -> dict[tuple[str, str, int], float]:
    """Return the log throughput of each finished cell of one repeat."""
    there = cells[cells["status"] == "ok"]
    columns = (there[name].tolist() for name in ("arm", "workload", "concurrency", "system_throughput"))
    return {
        (arm, workload, concurrency): float(np.log(speed))
        for arm, workload, concurrency, speed in zip(*columns, strict=True)
        if speed > 0
    }


def _half_width(cell: CellPilot, base: CellPilot, repeats: int, *, texts: bool) -> float:
    """Return the half-width that so many repeats like the pilot's should have."""
    sides = []
    for side in (cell, base):
        runs = 1 if side.same_prompts else repeats
        served = side.texts_served(runs, side.window_s) if texts else np.inf
        sides.append(side.variance(repeats, side.window_s, served))
    return half_width(together(*sides).value, repeats)


def _error(cell: CellPilot, base: CellPilot) -> float:
    """Return the standard error of one more repeat against the mean of the pilot's."""
    total = 0.0
    for side in (cell, base):
        for repeats in (1, side.repeats):
            served = np.inf if side.same_prompts else side.texts_served(repeats, side.window_s)
            total += side.variance(repeats, side.window_s, served).value
    return float(np.sqrt(total))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a backtest comes to.

    Attributes
    ----------
    places : int
        Speed-ups with a forecast and an interval.
    ratio : float
        Median of reached over forecast.
    near : int
        Places where the two lie within `NEAR` of each other.
    wider : float
        Median of the forecast with the texts' variance over that without.
    repeats, inside : int
        Repeats that were left out, and those of them within `WITHIN` forecast standard errors.
    scatter : float
        Root mean square of their distances, in forecast standard errors: 1 where the forecast is right.
    """

    places: int
    ratio: float
    near: int
    wider: float
    repeats: int
    inside: int
    scatter: float


def verdict(tested: Sequence[Tested]) -> Verdict:
    """Return what a backtest comes to.

    Raises
    ------
    UserError
        No speed-up has both a forecast and an interval.
    """
    known = [row for row in tested if np.isfinite(row.reached) and row.forecast > 0]
    if not known:
        raise UserError("no speed-up has an interval to hold a forecast against", "see speclab check for why")
    ratios = [row.reached / row.forecast for row in known]
    distances = np.array([distance for row in tested for distance in row.distances])
    return Verdict(
        places=len(known),
        ratio=median(ratios),
        near=sum(1 / NEAR <= ratio <= NEAR for ratio in ratios),
        wider=median(row.of_workload / row.forecast for row in known),
        repeats=len(distances),
        inside=int((np.abs(distances) <= WITHIN).sum()),
        scatter=float(np.sqrt((distances**2).mean())),
    )
