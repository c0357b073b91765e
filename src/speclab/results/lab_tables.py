"""The tables between records and findings: a row for each cell, draft position, check, prompt and block of the window.

Raw simulated events are made again in seconds and are not committed; these tables are. Figures are kept to six
significant digits, so that the last bit of a sum does not show as a change.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from speclab import paths, whole
from speclab.cache import keys
from speclab.cache.code import package_source
from speclab.cache.store import kept
from speclab.errors import UserError
from speclab.metrics import summary
from speclab.record.cell import Cell

DIGITS = "%.6g"
KINDS = ("cells", "positions", "checks", "answers", "blocks", "replays")
KEYS = {"arm", "workload", "concurrency", "repeat", "source"}
"""Columns of every row of every table."""
OPTIONAL_TEXT = ("conditions", "failure", "failed_checks", "warned_checks", "opening")
"""Columns of text that may be null in every row, and are text all the same."""


@dataclass(frozen=True, slots=True)
class Tables:
    """What the records of a lab (or of one of its arms) come to.

    Attributes
    ----------
    cells : pd.DataFrame
        One row a cell: every metric of the cell (`speclab.metrics.summary.Summary`).
    positions : pd.DataFrame
        One row a cell and draft position: acceptance.
    checks : pd.DataFrame
        One row a cell and check.
    answers : pd.DataFrame
        One row a cell and prompt: the steps that its answers took.
    blocks : pd.DataFrame
        One row a cell and block of its window: the sums that intervals are resampled from.
    replays : pd.DataFrame
        One row a cell and prompt: the steps that its answers would have taken at each shorter k.
    """

    cells: pd.DataFrame
    positions: pd.DataFrame
    checks: pd.DataFrame
    answers: pd.DataFrame
    blocks: pd.DataFrame
    replays: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def source(self) -> str:
        """The badge of every number in these tables."""
        return " and ".join(sorted(self.cells["source"].unique()))


def of(cells: Sequence[Cell]) -> Tables:
    """Return the tables of some cells."""
    made = [_summary(cell) for cell in cells]
    return Tables(
        cells=pd.DataFrame([cell.row for cell in made]),
        positions=_stack([cell.positions for cell in made]),
        checks=_stack([cell.checks for cell in made]),
        answers=_stack([cell.answers for cell in made]),
        blocks=_stack([cell.blocks for cell in made]),
        replays=_stack([cell.replays for cell in made]),
    )


def _summary(cell: Cell) -> summary.Summary:
    """Return a cell's rows; kept, since a record says by hash what it holds (those of old do not)."""
    record = cell.record
    if record.requests_sha256 is None:
        return summary.of(cell)
    code = keys.joined(package_source().sha256("speclab.metrics.summary.of"), keys.of_arithmetic())
    key = keys.joined(code, keys.of_values(record))
    return kept(f"cell-{record.asked.lab}-{record.asked.arm}-{record.asked.cell}", key, lambda: summary.of(cell))


def folder(data: Path, lab: str, machine: str) -> Path:
    """Return the folder of a lab's tables; `machine` is ``<engine>-<device>`` as in the records' path."""
    return data / "derived" / lab / machine


def write(tables: Tables, into: Path, arm: str) -> None:
    """Write one arm's tables as CSV files.

    Raises
    ------
    UserError
        The folder cannot be written.
    """
    for kind in KINDS:
        text = getattr(tables, kind).to_csv(index=False, float_format=DIGITS, lineterminator="\n")
        whole.write(into / f"{arm}.{kind}.csv", text, "the tables")


def read_folder(where: Path, arms: Sequence[str]) -> Tables:
    """Return the tables that one folder (of a lab on one machine) holds of some arms.

    Raises
    ------
    UserError
        A table is missing or damaged.
    """
    there = [arm for arm in arms if (where / f"{arm}.cells.csv").exists()]
    return Tables(**{kind: _stack([_read_csv(where / f"{arm}.{kind}.csv") for arm in there]) for kind in KINDS})


def _read_csv(file: Path) -> pd.DataFrame:
    """Return one table, or say that it is not what `write` wrote."""
    try:
        text = file.read_text(encoding="utf-8")
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
        if not text.endswith("\n") or len({len(row) for row in rows}) > 1:
            raise ValueError("it ends in the middle of a row, or its rows differ in length")
        table = (
            pd.read_csv(file, dtype=dict.fromkeys(OPTIONAL_TEXT, "str")) if any(rows) else pd.DataFrame()
        )  # an arm without drafts has no positions
        needed = KEYS | {"status"} if file.name.endswith(".cells.csv") else KEYS if any(rows) else set()
        if missing := sorted(needed - set(table.columns)):
            raise ValueError(f"it has no column {missing[0]}")
    except (OSError, ValueError, csv.Error) as error:
        problem = str(getattr(error, "strerror", None) or error).splitlines()[0]
        lab, engine, arm = file.parts[-3], file.parts[-2].partition("-")[0], file.name.rsplit(".", 2)[0]
        out = "" if (data := file.parents[3]) == paths.root() / "data" else f" --out {data}"
        remedy = f"make it again: speclab run {lab} --engine {engine} --arms {arm}{out}"
        raise UserError(f"not a table of results ({problem})", remedy, file=file) from None
    return table


def _stack(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    filled = [frame for frame in frames if not frame.empty]
    return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame()
