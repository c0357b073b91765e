"""Resampled values of every finding that is a ratio of sums over time, place by place."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from speclab.findings.intervals import Draws, Resampled, between, deviations, generator, joined, resample
from speclab.findings.pairs import OK
from speclab.lab import BASELINE

BLOCKS_TO_RESAMPLE = 5
"""Blocks that a window is resampled in: few and long, since a short block is too like its neighbour.

How often the intervals of more and fewer blocks hold the truth is on the book's page "Coverage".
"""

Key = tuple[Hashable, ...]
"""Finding, source, arm, workload, concurrency."""

OF_A_CELL: dict[str, dict[str, int]] = {
    "system_throughput": {"tokens": 1, "seconds": -1},
    "user_throughput": {"answer_rates": 1, "answers": -1},
    "time_per_output_token": {"answer_ms": 1, "answer_tokens": -1},
    "step_time": {"gap_ms": 1, "steps": -1},
    "tokens_per_step": {"decode_tokens": 1, "steps": -1},
    "ms_per_accepted_token": {"gap_ms": 1, "decode_tokens": -1},
    "draft_coverage": {"drafts": 1, "steps": -1},
    "implied_step_time": {"answer_ms": 1, "answer_tokens": -1, "drafted_tokens": 1, "drafts": -1},
}
"""Findings of one cell as sums over its blocks, each to its power. ``drafted_tokens`` are drafts + accepted."""

AGAINST_THE_BASELINE = {
    "speed_up": ("system_throughput", "system_throughput"),
    "speed_up_mean_of_requests": ("user_throughput", "user_throughput"),
    "break_even_length": ("step_time", "step_time"),
    "implied_break_even_length": ("implied_step_time", "time_per_output_token"),
}
"""Findings that are a ratio of an arm's figure to a figure of its baseline."""

BASE_OF_PAIR = "step_time of the baseline"
"""What a difference of step times was taken from, resampled as one of a pair; no finding of its own."""

_SUMS = sorted({column for powers in OF_A_CELL.values() for column in powers})


@dataclass(frozen=True)
class Spreads:
    """How far each finding scatters: deviations of its logarithm, resampled.

    Attributes
    ----------
    by_key : mapping
        Deviations, shape (draws,), by (finding, source, arm, workload, concurrency). Arms at one place are resampled
        with the same blocks, so that draws of two arms at one place may be divided by each other.
    """

    by_key: Mapping[Key, Draws] = field(default_factory=dict)


def spreads(blocks: pd.DataFrame, standing: pd.DataFrame, count: int = BLOCKS_TO_RESAMPLE) -> Spreads:
    """Return the spread of every finding that can be resampled.

    Parameters
    ----------
    blocks : pd.DataFrame
        Rows of `speclab.metrics.summary.Summary`; may be empty.
    standing : pd.DataFrame
        ``source, arm, workload, concurrency, repeat, finding, state``: which repeats of which finding passed the checks
        that it rests on. Only those are resampled.
    count : int
        Blocks of each window.
    """
    if blocks.empty:
        return Spreads()
    made = list(_resampled(blocks, standing[standing["state"] == OK], count))
    scatter: dict[Key, list[tuple[float, float, int]]] = {}
    for keys, place in made:
        for index, key in enumerate(keys):
            told = float(place.repeats[index]), float(place.blocks[index]) * place.n, place.n
            scatter.setdefault(key[:2], []).append(told)
    apart = {what: between(*zip(*rows, strict=True)) for what, rows in scatter.items()}
    found: dict[Key, Draws] = {}
    for keys, place in made:
        # a machine that is slow through a whole sweep is slow at each of its points: one draw for a curve
        repeated = np.column_stack([generator(*key[:-1]).standard_normal(len(place.luck)) for key in keys])
        drawn = deviations(place, [apart[key[:2]] for key in keys], repeated)
        found |= {key: drawn[:, index] for index, key in enumerate(keys) if np.isfinite(drawn[:, index]).all()}
    return Spreads(found)


def _resampled(blocks: pd.DataFrame, passed: pd.DataFrame, count: int) -> Iterator[tuple[list[Key], Resampled]]:
    """Yield what can be resampled together: findings of one arm at one place that rest on the same repeats."""
    of_cells = dict(_by_cell(blocks))
    for place, here in passed.groupby(["source", "arm", "workload", "concurrency"], sort=False):
        source, _, workload, concurrency = place
        for repeats, names in _alike(here):
            cells = [of_cells.get((*place, repeat)) for repeat in repeats]
            bases = [of_cells.get((source, BASELINE, workload, concurrency, repeat)) for repeat in repeats]
            alone = [name for name in names if name in OF_A_CELL]
            paired = [name for name in names if name in AGAINST_THE_BASELINE]
            if "drafting_time" in names:
                paired.append(BASE_OF_PAIR)
            for wanted, sides in ((alone, (cells,)), (paired, (cells, bases))):
                sums = _side_by_side(*sides) if wanted else None
                if sums is not None:
                    rng = generator(source, workload, concurrency)
                    yield [(name, *place) for name in wanted], resample(joined(sums, count), _powers(wanted), rng)


def _by_cell(blocks: pd.DataFrame) -> Iterator[tuple[Key, NDArray[np.float64]]]:
    keys = ["source", "arm", "workload", "concurrency", "repeat"]
    blocks = blocks.assign(drafted_tokens=blocks["drafts"] + blocks["accepted"])
    for key, cell in blocks.sort_values([*keys, "block"], kind="stable").groupby(keys, sort=False):
        yield key, cell[_SUMS].to_numpy(np.float64)


def _alike(here: pd.DataFrame) -> Iterator[tuple[list[int], list[str]]]:
    """Yield the findings of one place together that rest on the same repeats."""
    groups: dict[tuple[int, ...], list[str]] = {}
    for finding, rows in here.groupby("finding", sort=False):
        groups.setdefault(tuple(sorted(rows["repeat"])), []).append(str(finding))
    for repeats, names in groups.items():
        yield list(repeats), names


def _side_by_side(*sides: list[NDArray[np.float64] | None]) -> NDArray[np.float64] | None:
    """Return the blocks of paired cells, shape (repeats, blocks, columns of both); None where one is missing."""
    rows = []
    for cells in zip(*sides, strict=True):
        whole = [cell for cell in cells if cell is not None]
        if len(whole) < len(cells) or len({len(cell) for cell in whole}) > 1:
            return None
        rows.append(np.concatenate(whole, axis=1))
    return np.stack(rows) if len({len(row) for row in rows}) == 1 else None


def _powers(findings: list[str]) -> NDArray[np.float64]:
    """Return each finding as powers of the sums, shape (columns, findings); a baseline's columns follow an arm's."""
    is_paired = any(name not in OF_A_CELL for name in findings)
    powers = np.zeros((len(_SUMS) * (2 if is_paired else 1), len(findings)))

    def put(figure: str, index: int, side: int, sign: int) -> None:
        for column, power in OF_A_CELL[figure].items():
            powers[side * len(_SUMS) + _SUMS.index(column), index] = sign * power

    for index, name in enumerate(findings):
        if name == BASE_OF_PAIR:
            put("step_time", index, 1, 1)
            continue
        ours, theirs = AGAINST_THE_BASELINE.get(name, (name, None))
        put(ours, index, 0, 1)
        if theirs is not None:
            put(theirs, index, 1, -1)
    return powers
