"""Every derived figure of a lab as one row of a long table: what the command line prints and the book draws."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict

import numpy as np
import pandas as pd

from speclab.errors import UserError
from speclab.findings import acceptance
from speclab.findings.averages import WEIGHTS, averaged
from speclab.findings.break_even import break_even_length
from speclab.findings.crossover import crossover
from speclab.findings.drafting import drafting_time, drafting_time_per_position
from speclab.findings.intervals import Draws
from speclab.findings.pairs import OK, state, with_baseline
from speclab.findings.readings import implied_break_even_length, implied_step_time
from speclab.findings.speed_up import speed_up, speed_up_mean_of_requests
from speclab.findings.spreads import BLOCKS_TO_RESAMPLE, Key, spreads
from speclab.findings.trend import acceptance_over_answer, acceptance_over_prompt, acceptance_trend
from speclab.lab import BASELINE

COLUMNS = [
    "finding",
    "arm",
    "workload",
    "concurrency",
    "position",
    "value",
    "low",
    "high",
    "n",
    "status",
    "unit",
    "source",
]
NUMBERS = ["concurrency", "position", "value", "low", "high", "n"]
WHOLE = ["concurrency", "position", "n"]

UNITS = {
    "speed_up": "x",
    "speed_up_mean_of_requests": "x",
    "crossover": "requests",
    "system_throughput": "tok/s",
    "activity_throughput": "tok/s",
    "user_throughput": "tok/s",
    "time_per_output_token": "ms",
    "time_per_output_token_p99": "ms",
    "step_gap_p50": "ms",
    "step_gap_p99": "ms",
    "step_time": "ms",
    "tokens_per_step": "tokens",
    "ms_per_accepted_token": "ms",
    "break_even_length": "tokens",
    "drafting_time": "ms",
    "drafting_time_per_position": "ms",
    "reported_acceptance_length": "tokens",
    "draft_coverage": "ratio",
    "draft_tokens_per_draft": "tokens",
    "implied_step_time": "ms",
    "implied_break_even_length": "tokens",
    "occupancy": "requests",
    "activity_occupancy": "requests",
    "in_flight": "requests",
    "answering": "requests",
    "counter_residual": "ratio",
    "acceptance_drift": "ratio",
    "acceptance_trend": "ratio",
    "acceptance_over_answer": "ratio",
    "acceptance_over_prompt": "ratio",
    "tokens_per_step_at_k": "tokens",
    "ms_per_token_at_k": "ms",
    "best_k": "tokens",
    "acceptance_by_position": "ratio",
    "acceptance_by_position_conditional": "ratio",
}
"""Every finding and its unit, in the table's order."""

PAIRED: dict[str, Callable[[pd.DataFrame], pd.Series[float]]] = {
    "speed_up": speed_up,
    "speed_up_mean_of_requests": speed_up_mean_of_requests,
    "break_even_length": break_even_length,
    "drafting_time": drafting_time,
    "implied_break_even_length": implied_break_even_length,
}
"""Findings that hold a cell against its baseline; `drafting_time_per_position` too, which also needs k."""

TRENDS = {
    "acceptance_trend": acceptance_trend,
    "acceptance_over_answer": acceptance_over_answer,
    "acceptance_over_prompt": acceptance_over_prompt,
}
"""Findings that hold texts against themselves or each other."""

OF_DRAFTS = ("reported_acceptance_length", "draft_coverage", "draft_tokens_per_draft", "implied_step_time")
"""Findings of one cell that an arm without drafts does not have."""


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
        `COLUMNS`. Numbers are floats, NaN where there is none (`to_json` writes null). `low` and `high` are a 95%
        interval. `n` is the number of repeats it rests on; of drafts for acceptance, of prompts for its trend, of
        concurrencies for the crossover, whose bound is null where it lies beyond the measured range. Status: ``ok``;
        ``failed check``: no repeat passed the checks that this finding rests on (the value is shown where there is
        one, without an interval); ``not reached``; ``not resolved``: the data do not decide, or there is nothing to
        compute it from (no baseline beside it, a counter not offered).
    draws : dict
        As `speclab.findings.averages.averaged` returns them.

    Raises
    ------
    UserError
        There is no cell of the baseline, or an arm is not in `k_by_arm`.
    """
    unknown = sorted(set(cells["arm"]) - set(k_by_arm))
    if unknown:
        raise UserError(f"results of unknown arms: {', '.join(unknown)}", "add them to the lab, or move them away")
    long = _long(with_baseline(cells), k_by_arm)
    parts, standing = pd.DataFrame() if blocks is None else blocks, long.dropna(subset="value")
    of_cells, draws = averaged(long, spreads(parts, standing, resampled_in))
    pooled = acceptance.pooled(positions, cells)
    lengths = acceptance.lengths(pooled)
    table = pd.concat(
        [
            _with_length_intervals(of_cells, lengths),
            _crossovers(of_cells[of_cells["finding"] == "speed_up"], draws),
            acceptance.acceptance_drift(lengths).assign(finding="acceptance_drift"),
            _trends(answers, cells, k_by_arm),
            *_by_position(pooled),
        ],
        ignore_index=True,
    ).reindex(columns=COLUMNS)
    table["unit"] = table["finding"].map(UNITS)
    table[NUMBERS] = table[NUMBERS].astype(float)
    order = table["finding"].map({finding: index for index, finding in enumerate(UNITS)})
    return table.iloc[np.argsort(order.to_numpy(), kind="stable")].reset_index(drop=True), draws


def joined(table: pd.DataFrame, more: pd.DataFrame) -> pd.DataFrame:
    """Return findings with other rows of the same kind among them, in the table's order."""
    if more.empty:
        return table
    both = pd.concat([table, more.assign(unit=more["finding"].map(UNITS)).reindex(columns=COLUMNS)], ignore_index=True)
    both[NUMBERS] = both[NUMBERS].astype(float)
    order = both["finding"].map({finding: index for index, finding in enumerate(UNITS)})
    return both.iloc[np.argsort(order.to_numpy(), kind="stable")].reset_index(drop=True)


def to_json(table: pd.DataFrame) -> str:
    """Return findings as a JSON list of flat objects; null where there is no value."""
    columns = {name: [_plain(name, value) for value in table[name]] for name in COLUMNS}
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return json.dumps(rows, indent=1, allow_nan=False)


def _plain(column: str, value: object) -> str | float | int | None:
    if not isinstance(value, float):
        return None if value is None else str(value)
    if not np.isfinite(value):
        return None
    return int(value) if column in WHOLE else float(value)


def _long(pairs: pd.DataFrame, k_by_arm: Mapping[str, int]) -> pd.DataFrame:
    """Return a row for each cell and finding, as `speclab.findings.averages.averaged` takes them."""
    k = pairs["arm"].map(dict(k_by_arm))
    drafts, compares = k > 0, pairs["arm"] != BASELINE
    everywhere = pd.Series(True, index=pairs.index)
    parts = []

    def add(finding: str, value: pd.Series, rows: pd.Series, standing: pd.Series, base: pd.Series | float) -> None:
        weight = pd.to_numeric(pairs[WEIGHTS[finding]]) if finding in WEIGHTS else 1.0
        part = pairs[[*acceptance.CELL, "repeat"]].assign(
            finding=finding, value=pd.to_numeric(value).astype(float), weight=weight, base=base, state=standing
        )
        parts.append(part[rows])

    for finding in UNITS:
        if finding in PAIRED:
            base = pairs["step_time_baseline"] if finding == "drafting_time" else np.nan
            add(finding, PAIRED[finding](pairs), compares, pairs["pair_state"], base)
        elif finding == "drafting_time_per_position":
            base = pairs["step_time_baseline"] / k.where(drafts)
            add(finding, drafting_time_per_position(pairs, k_by_arm), drafts, pairs["pair_state"], base)
        elif finding == "implied_step_time":
            add(finding, implied_step_time(pairs), drafts, state(pairs, finding), np.nan)
        elif finding in pairs.columns:
            rows = drafts if finding in OF_DRAFTS else everywhere
            add(finding, pairs[finding], rows, state(pairs, finding), np.nan)
    table = pd.concat(parts, ignore_index=True)
    table["value"] = table["value"].where(np.isfinite(table["value"]))
    return table


def _with_length_intervals(of_cells: pd.DataFrame, lengths: pd.DataFrame) -> pd.DataFrame:
    """Put the interval that the drafts give on the reported acceptance length, in place of the range of repeats."""
    if lengths.empty:
        return of_cells
    keyed = lengths.assign(finding="reported_acceptance_length").set_index(["finding", *acceptance.CELL])
    table = of_cells.set_index(["finding", *acceptance.CELL])
    known = keyed.index.intersection(table.index)
    table = table.astype({"n": float})
    table.loc[known, ["low", "high", "n"]] = keyed.loc[known, ["low", "high", "n"]].astype(float)
    return table.reset_index()


def _crossovers(speed_ups: pd.DataFrame, draws: Mapping[Key, Draws]) -> pd.DataFrame:
    rows = []
    for (source, arm, workload), curve in speed_ups.groupby(["source", "arm", "workload"], sort=False):
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
    return pd.concat([fit(drafting, cells).assign(finding=name) for name, fit in TRENDS.items()], ignore_index=True)


def _by_position(pooled: pd.DataFrame) -> list[pd.DataFrame]:
    if pooled.empty:
        return []
    keys = [*acceptance.CELL, "status", "position"]
    kinds = (
        ("acceptance_by_position", "marginal", "drafts"),
        ("acceptance_by_position_conditional", "conditional", "reached"),
    )
    return [
        pooled[[*keys, share, f"{share}_low", f"{share}_high", n]]
        .set_axis([*keys, "value", "low", "high", "n"], axis=1)
        .assign(finding=finding)
        for finding, share, n in kinds
    ]
