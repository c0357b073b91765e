"""Resampled values of every finding that is a ratio of sums over time, place by place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from speclab.findings.catalogue import BY_NAME, RESAMPLED, Finding
from speclab.findings.intervals import Draws, Resampled, between, deviations, generator, joined, resample
from speclab.findings.pairs import OK
from speclab.findings.places import CELL, Key
from speclab.lab import BASELINE

BLOCKS_TO_RESAMPLE = 5
"""Blocks that a window is resampled in: few and long, since a short block is too like its neighbour.

How often the intervals of more and fewer blocks hold the truth is on the book's page "Coverage".
"""

_SUMS = sorted({column for finding in RESAMPLED.values() for column in finding.sums})


def base_of(finding: Finding) -> str:
    """Return the name under which the base of a difference is resampled, as one of a pair; no finding of its own."""
    if finding.less is None:
        raise ValueError(f"{finding.name} is no difference")
    return f"{finding.less[1]} of the baseline"


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
        that it requires. Only those are resampled.
    count : int
        Blocks of each window.
    """
    if blocks.empty:
        return Spreads()
    made = list(_resampled(blocks, standing[standing["state"] == OK], count))
    scatter: dict[Key, list[tuple[float, float, int]]] = {}
    for keys, place in made:
        for index, key in enumerate(keys):
            variances = float(place.repeats[index]), float(place.blocks[index]) * place.n
            scatter.setdefault(key[:2], []).append((*variances, place.n))
    apart = {what: between(*zip(*rows, strict=True)) for what, rows in scatter.items()}
    by_key: dict[Key, Draws] = {}
    for keys, place in made:
        # a machine that is slow through a whole sweep is slow at each of its points: one draw for a curve
        repeated = np.column_stack([generator(*key[:-1]).standard_normal(len(place.luck)) for key in keys])
        drawn = deviations(place, [apart[key[:2]] for key in keys], repeated)
        by_key |= {key: drawn[:, index] for index, key in enumerate(keys) if np.isfinite(drawn[:, index]).all()}
    return Spreads(by_key)


def _resampled(blocks: pd.DataFrame, passed: pd.DataFrame, count: int) -> Iterator[tuple[list[Key], Resampled]]:
    """Yield what can be resampled together: findings of one arm at one place that rest on the same repeats."""
    of_cells = dict(_by_cell(blocks))
    for place, together in _alike(passed).items():
        source, _, workload, concurrency = place
        for repeats, names in together.items():
            cells = [of_cells.get((*place, repeat)) for repeat in repeats]
            bases = [of_cells.get((source, BASELINE, workload, concurrency, repeat)) for repeat in repeats]
            alone = [name for name in names if name in RESAMPLED]
            paired = [name for name in names if BY_NAME[name].over]
            paired += dict.fromkeys(base_of(BY_NAME[name]) for name in names if BY_NAME[name].less)
            for wanted, sides in ((alone, (cells,)), (paired, (cells, bases))):
                sums = _side_by_side(*sides) if wanted else None
                if sums is not None:
                    rng = generator(source, workload, concurrency)
                    yield [(name, *place) for name in wanted], resample(joined(sums, count), _powers(wanted), rng)


def _by_cell(blocks: pd.DataFrame) -> Iterator[tuple[Key, NDArray[np.float64]]]:
    keys = [*CELL, "repeat"]
    blocks = blocks.assign(drafted_tokens=blocks["drafts"] + blocks["accepted"])
    for key, cell in blocks.sort_values([*keys, "block"], kind="stable").groupby(keys, sort=False):
        yield key, cell[_SUMS].to_numpy(np.float64)


def _alike(passed: pd.DataFrame) -> dict[Key, dict[tuple[int, ...], list[str]]]:
    """Return, for each place, the findings that rest on the same repeats, by these."""
    repeats: dict[tuple[Key, str], list[int]] = {}
    columns = (passed[name].tolist() for name in [*CELL, "finding", "repeat"])
    for *at, finding, repeat in zip(*columns, strict=True):
        repeats.setdefault((tuple(at), finding), []).append(repeat)
    together: dict[Key, dict[tuple[int, ...], list[str]]] = {}
    for (place, finding), of_finding in repeats.items():
        together.setdefault(place, {}).setdefault(tuple(sorted(of_finding)), []).append(finding)
    return together


def _side_by_side(*sides: list[NDArray[np.float64] | None]) -> NDArray[np.float64] | None:
    """Return the blocks of paired cells, shape (repeats, blocks, columns of both); None where one is missing."""
    rows = []
    for cells in zip(*sides, strict=True):
        whole = [cell for cell in cells if cell is not None]
        if len(whole) < len(cells) or len({len(cell) for cell in whole}) > 1:
            return None
        rows.append(np.concatenate(whole, axis=1))
    return np.stack(rows) if len({len(row) for row in rows}) == 1 else None


def _powers(names: list[str]) -> NDArray[np.float64]:
    """Return each quantity as powers of the sums, shape (columns, names); a baseline's columns follow an arm's."""
    is_paired = any(name not in RESAMPLED for name in names)
    powers = np.zeros((len(_SUMS) * (2 if is_paired else 1), len(names)))
    bases = {base_of(finding): finding.less[1] for finding in BY_NAME.values() if finding.less}

    def put(figure: str, index: int, side: int, sign: int) -> None:
        for column, power in RESAMPLED[figure].sums.items():
            powers[side * len(_SUMS) + _SUMS.index(column), index] = sign * power

    for index, name in enumerate(names):
        if name in bases:
            put(bases[name], index, 1, 1)
            continue
        ours, theirs = BY_NAME[name].over or (name, None)
        put(ours, index, 0, 1)
        if theirs is not None:
            put(theirs, index, 1, -1)
    return powers
