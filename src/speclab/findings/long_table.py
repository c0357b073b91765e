"""Every derived figure of a lab as one row of a long table: what the command line prints and the book draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np
import pandas as pd

from speclab.errors import UserError
from speclab.findings import acceptance
from speclab.findings.averages import averaged
from speclab.findings.between import judged
from speclab.findings.catalogue import CATALOGUE
from speclab.findings.crossover import crossover
from speclab.findings.intervals import Draws
from speclab.findings.lab_checks import without_negative_drafting
from speclab.findings.pairs import OK, by_repeat, with_baseline
from speclab.findings.places import CURVE, Key
from speclab.findings.spreads import BLOCKS_TO_RESAMPLE, spreads
from speclab.findings.trend import TRENDS

COLUMNS = [
    *("finding", "arm", "workload", "concurrency", "position", "value", "low", "high", "n"),
    *("status", "unit", "source"),
]
NUMBERS = ["concurrency", "position", "value", "low", "high", "n"]
WHOLE = ["concurrency", "position", "n"]
"""Numbers that are whole, though they are kept as floats so that they can be missing."""

_UNITS = {finding.name: finding.unit for finding in CATALOGUE}
_ORDER = {finding.name: index for index, finding in enumerate(CATALOGUE)}


def findings(
    cells: pd.DataFrame,
    positions: pd.DataFrame,
    k_by_arm: Mapping[str, int],
    answers: pd.DataFrame | None = None,
    blocks: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return all findings of a lab; arguments and errors are those of `with_draws`, whose table this is."""
    return with_draws(cells, positions, k_by_arm, answers, blocks)[0]


def with_draws(
    cells: pd.DataFrame,
    positions: pd.DataFrame,
    k_by_arm: Mapping[str, int],
    answers: pd.DataFrame | None = None,
    blocks: pd.DataFrame | None = None,
    *,
    resampled_in: int = BLOCKS_TO_RESAMPLE,
) -> tuple[pd.DataFrame, dict[Key, Draws]]:
    """Return all findings of a lab, and the resampled values behind their intervals.

    Parameters
    ----------
    cells : pd.DataFrame
        Rows of `speclab.metrics.summary.Summary`.
    positions : pd.DataFrame
        Rows of `speclab.metrics.summary.Summary`; may be empty.
    k_by_arm : mapping of str to int
        Draft tokens that each arm asks for at a step; 0 for the baseline.
    answers : pd.DataFrame, optional
        Rows of `speclab.metrics.summary.Summary`; without them there is no acceptance trend.
    blocks : pd.DataFrame, optional
        Rows of `speclab.metrics.summary.Summary`; without them only repeats give intervals, and a crossover has none.
    resampled_in : int
        Blocks that each window is resampled in.

    Returns
    -------
    table : pd.DataFrame
        `COLUMNS`. Numbers are floats, NaN where there is none. `low` and `high` are a 95%
        interval. `n` is the number of repeats it rests on; of drafts for acceptance, of prompts for its trend, of
        concurrencies for the crossover, whose bound is null where it lies beyond the measured range. Status: ``ok``;
        ``failed check``: no repeat passed the checks that this finding requires (the value is shown where there is
        one, without an interval), or a drafting time is below 0 with all of its interval; ``not reached``; ``not
        resolved``: the data do not decide, or there is nothing to compute it from (no baseline beside it, a counter not
        offered).
    draws : dict
        As `speclab.findings.averages.averaged` returns them.

    Raises
    ------
    UserError
        An arm is not in `k_by_arm`.
    """
    unknown = sorted(set(cells["arm"]) - set(k_by_arm))
    if unknown:
        raise UserError(f"results of unknown arms: {', '.join(unknown)}", "add them to the lab, or move them away")
    cells = judged(cells, answers)
    pairs = with_baseline(cells)
    k = pairs["arm"].map(dict(k_by_arm))
    parts = [part for finding in CATALOGUE if (part := by_repeat(finding, pairs, k)) is not None]
    long = pd.concat(parts, ignore_index=True)
    long["value"] = long["value"].where(np.isfinite(long["value"]))
    in_blocks = pd.DataFrame() if blocks is None else blocks
    of_cells, draws = averaged(long, spreads(in_blocks, long.dropna(subset="value"), resampled_in))
    of_cells = without_negative_drafting(of_cells)
    pooled = acceptance.pooled(positions, cells)
    lengths = acceptance.lengths(pooled)
    return _in_order(
        acceptance.with_length_intervals(of_cells, lengths),
        _crossovers(of_cells[of_cells["finding"] == "speed_up"], draws),
        acceptance.acceptance_drift(lengths).assign(finding="acceptance_drift"),
        _trends(answers, cells, k_by_arm),
        *acceptance.by_position(pooled),
    ), draws


def joined(table: pd.DataFrame, more: pd.DataFrame) -> pd.DataFrame:
    """Return findings with other rows of the same kind among them, in the table's order."""
    return table if more.empty else _in_order(table, more)


def _in_order(*parts: pd.DataFrame) -> pd.DataFrame:
    """Return rows of findings as one table in the catalogue's order, with their units."""
    table = pd.concat(parts, ignore_index=True).reindex(columns=COLUMNS)
    table["unit"] = table["finding"].map(_UNITS)
    table[NUMBERS] = table[NUMBERS].astype(float)
    order = table["finding"].map(_ORDER)
    return table.iloc[np.argsort(order.to_numpy(), kind="stable")].reset_index(drop=True)


def _crossovers(speed_ups: pd.DataFrame, draws: Mapping[Key, Draws]) -> pd.DataFrame:
    rows = []
    for (source, arm, workload), curve in speed_ups.groupby(CURVE, sort=False):
        usable = curve[curve["status"] == OK]
        keys: list[Key] = [("speed_up", source, arm, workload, at) for at in usable["concurrency"]]
        curves = np.stack([draws[key] for key in keys], axis=1) if keys and set(keys) <= set(draws) else None
        unusable = curve.loc[curve["status"] != OK, "concurrency"].tolist()
        crossing = crossover(usable["concurrency"], usable["value"], unusable, curves)
        rows.append({"finding": "crossover", "source": source, "arm": arm, "workload": workload, **asdict(crossing)})
    return pd.DataFrame(rows)


def _trends(answers: pd.DataFrame | None, cells: pd.DataFrame, k_by_arm: Mapping[str, int]) -> pd.DataFrame:
    if answers is None or answers.empty:
        return pd.DataFrame()
    drafting = answers[answers["arm"].map(dict(k_by_arm)) > 0]
    return pd.concat([fit(drafting, cells).assign(finding=fit.__name__) for fit in TRENDS], ignore_index=True)


def overview(table: pd.DataFrame) -> pd.DataFrame:
    """Return every finding of the catalogue in a row: what it is, at how many places it is known, and its range.

    Parameters
    ----------
    table : pd.DataFrame
        As `findings` makes it.

    Returns
    -------
    pd.DataFrame
        ``finding, words, of, unit, places, ok, least, most``: ``ok`` of the ``places`` have a value that passed its
        checks; ``least`` and ``most`` are theirs, NaN where there is none.
    """
    rows = pd.DataFrame(
        [[finding.name, finding.words, finding.of, finding.unit] for finding in CATALOGUE],
        columns=["finding", "words", "of", "unit"],
    )
    known = table.assign(value=table["value"].where(table["status"] == OK))
    ranges = known.groupby("finding")["value"].agg(places="size", ok="count", least="min", most="max")
    return rows.join(ranges, on="finding").fillna({"places": 0, "ok": 0}).astype({"places": int, "ok": int})
