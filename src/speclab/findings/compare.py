"""Two runs of the same cells: what differs beyond the noise, and what does not."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from speclab.findings.averages import averaged
from speclab.findings.catalogue import RESAMPLED
from speclab.findings.intervals import DRAWS, Draws, bounds
from speclab.findings.pairs import FAILED_CHECK, NOT_RESOLVED, OK, state
from speclab.findings.spreads import spreads
from speclab.lab import BASELINE

FINDINGS = ("system_throughput", "user_throughput", "step_time", "tokens_per_step", "speed_up")
"""What is compared; the speed-up where both runs have the baseline."""

COLUMNS = ["finding", "arm", "workload", "concurrency", "a", "b", "ratio", "low", "high", "repeats", "status"]
OVERALL_COLUMNS = ["finding", "arm", "ratio", "low", "high", "cells", "status"]

HIGHER, LOWER, NOISE = "higher", "lower", "noise"
"""What the second run is, against the first: its interval excludes 1 on that side, or holds it."""

ONLY_A, ONLY_B = "only in A", "only in B"
CHANCE = 0.05
"""Share of cells without any difference whose 95% interval misses 1 all the same."""

_PLACE = ["arm", "workload", "concurrency"]
_Key = tuple[object, ...]


def compared(
    cells_a: pd.DataFrame, blocks_a: pd.DataFrame, cells_b: pd.DataFrame, blocks_b: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the second run over the first, cell by cell, and for each arm as a whole.

    Parameters
    ----------
    cells_a, blocks_a, cells_b, blocks_b : pd.DataFrame
        Rows of `speclab.metrics.summary.Summary` of the first and of the second run.

    Returns
    -------
    cells : pd.DataFrame
        `COLUMNS`, a row for each of `FINDINGS` and place: both figures, B over A with its 95% interval (blocks and
        repeats of both runs resampled, independently), and ``repeats``, the fewer of the two. Status: higher, lower,
        noise; failed check: in one of the runs no repeat passed; not resolved: no interval; only in A, only in B.
    overall : pd.DataFrame
        `OVERALL_COLUMNS`, a row for each finding and arm: the geometric mean of the ratios over all its places.
    """
    tables, draws = zip(*(_figures(*run) for run in ((cells_a, blocks_a, "A"), (cells_b, blocks_b, "B"))), strict=True)
    keys = ["finding", *_PLACE]
    sides = [table.set_index(keys).add_suffix(end) for table, end in zip(tables, ("_a", "_b"), strict=True)]
    both = sides[0].join(sides[1], how="outer")
    rows: list[list[object]] = []
    logs: dict[tuple[object, object], list[tuple[float, Draws]]] = {}
    for row in both.reset_index().to_dict("records"):
        key = tuple(row[name] for name in keys)
        made = _quotient(draws[0].get(key), draws[1].get(key))
        status, low, high = _standing(row, made)
        ratio = row["value_b"] / row["value_a"] if status in (HIGHER, LOWER, NOISE, NOT_RESOLVED) else np.nan
        rows.append([*key, row["value_a"], row["value_b"], ratio, low, high, _fewer(row["n_a"], row["n_b"]), status])
        if made is not None and status in (HIGHER, LOWER, NOISE):
            logs.setdefault((key[0], key[1]), []).append((np.log(ratio), np.log(made)))
    cells = pd.DataFrame(rows, columns=COLUMNS)
    order = {finding: place for place, finding in enumerate(FINDINGS)}
    cells = cells.sort_values(
        ["finding", *_PLACE],
        key=lambda column: column.map(order) if column.name == "finding" else column,
        kind="stable",
    )
    return cells.reset_index(drop=True), _overall(logs)


def _figures(cells: pd.DataFrame, blocks: pd.DataFrame, name: str) -> tuple[pd.DataFrame, dict[_Key, Draws]]:
    """Return the figures of one run and their resampled values by (finding, arm, workload, concurrency)."""
    keyed = cells.assign(source=name)
    figures = [finding for finding in FINDINGS if finding in RESAMPLED]
    long = pd.concat(
        [
            keyed[["source", *_PLACE, "repeat"]].assign(
                finding=finding, value=pd.to_numeric(keyed[finding]).astype(float), weight=1.0, base=np.nan,
                state=state(keyed, finding),
            )
            for finding in figures
        ],
        ignore_index=True,
    )  # fmt: skip
    parts = blocks.assign(source=name) if len(blocks) else blocks
    table, made = averaged(long, spreads(parts, long.dropna(subset="value")))
    draws: dict[_Key, Draws] = {(key[0], *key[2:]): drawn for key, drawn in made.items()}
    return _with_speed_up(table.drop(columns="source"), draws), draws


def _with_speed_up(table: pd.DataFrame, draws: dict[_Key, Draws]) -> pd.DataFrame:
    """Add the speed-up over the run's own baseline, and its draws: both arms were resampled with the same blocks."""
    throughput = table[table["finding"] == "system_throughput"].to_dict("records")
    bases = {(row["workload"], row["concurrency"]): row for row in throughput if row["arm"] == BASELINE}
    rows = []
    for own in throughput:
        arm, where = own["arm"], (own["workload"], own["concurrency"])
        if arm == BASELINE or where not in bases:
            continue
        base = bases[where]
        made = _quotient(*(draws.get(("system_throughput", side, *where)) for side in (BASELINE, arm)))
        if made is not None:
            draws["speed_up", arm, *where] = made
        standing = OK if own["status"] == base["status"] == OK else FAILED_CHECK
        rows.append(
            {"finding": "speed_up", "arm": arm, "workload": where[0], "concurrency": where[1],
             "value": own["value"] / base["value"], "n": min(own["n"], base["n"]), "status": standing}
        )  # fmt: skip
    return pd.concat([table, pd.DataFrame(rows)], ignore_index=True) if rows else table


def _quotient(below: Draws | None, above: Draws | None) -> Draws | None:
    if below is None or above is None:
        return None
    with np.errstate(all="ignore"):
        made: Draws = above / below
    return None if np.isnan(made).any() else made


def _standing(row: dict[object, object], made: Draws | None) -> tuple[str, float, float]:
    states = row["status_a"], row["status_b"]
    if not isinstance(states[0], str) or not isinstance(states[1], str):
        return (ONLY_B if isinstance(states[1], str) else ONLY_A), np.nan, np.nan
    if states != (OK, OK):
        return (FAILED_CHECK if FAILED_CHECK in states else NOT_RESOLVED), np.nan, np.nan
    if made is None:
        return NOT_RESOLVED, np.nan, np.nan
    low, high = bounds(made)
    return (HIGHER if low > 1 else LOWER if high < 1 else NOISE), low, high


def _fewer(a: float, b: float) -> float:
    return float(np.nanmin([a, b])) if not np.isnan([a, b]).all() else 0.0


def _overall(logs: dict[tuple[object, object], list[tuple[float, Draws]]]) -> pd.DataFrame:
    rows = []
    for (finding, arm), parts in logs.items():
        value = float(np.exp(np.mean([log for log, _ in parts])))
        mean = np.full(DRAWS, 0.0)
        for _, drawn in parts:
            mean = mean + drawn / len(parts)
        with np.errstate(over="ignore"):
            low, high = bounds(np.exp(mean))
        status = HIGHER if low > 1 else LOWER if high < 1 else NOISE
        rows.append([finding, arm, value, low, high, len(parts), status])
    order = list(itertools.product(FINDINGS, dict.fromkeys(arm for _, arm in logs)))
    table = pd.DataFrame(rows, columns=OVERALL_COLUMNS)
    return table.iloc[np.argsort([order.index((f, a)) for f, a in table[["finding", "arm"]].itertuples(index=False)])]
