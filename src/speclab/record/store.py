"""Cells on disk: written whole or not at all, read back as `Cell`, never run twice."""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from speclab import whole
from speclab.engines.base import Answer
from speclab.errors import UserError
from speclab.load.closed_loop import CellLog
from speclab.record.cell import Cell
from speclab.record.schema import REQUEST_COLUMNS, CellRecord, CellSpec

RECORD_FILE = "cell.json"
REQUESTS_FILE = "requests.parquet"

REMEDY = "delete this folder and run its lab again: only what is missing is run"

DAMAGE = (OSError, ValueError, KeyError, pa.ArrowException)
"""What reading a damaged request table raises, by where the damage is."""


def arm_folder(runs: Path, asked: CellSpec) -> Path:
    """Return the folder of one arm's cells: ``<runs>/<engine>-<device>/<lab>/<arm>``."""
    return runs / f"{asked.engine}-{asked.device}" / asked.lab / asked.arm


def cell_folder(runs: Path, asked: CellSpec) -> Path:
    """Return the folder of one cell."""
    return arm_folder(runs, asked) / asked.cell


def is_finished(folder: Path, asked: CellSpec) -> bool:
    """Return whether `folder` holds a whole, successful cell that was asked for in exactly this way."""
    folder = _place(folder)
    try:
        record = CellRecord.model_validate_json((folder / RECORD_FILE).read_bytes())
        if record.status != "ok" or record.asked_sha256 != asked.sha256:
            return False
        content = (folder / REQUESTS_FILE).read_bytes()
        if record.requests_sha256 is None:
            _parsed(content)
            return True
        return record.requests_sha256 == hashlib.sha256(content).hexdigest()
    except DAMAGE:
        return False  # half written by something else, damaged, or of an older shape: run it again


def write(folder: Path, record: CellRecord, requests: pa.Table) -> None:
    """Write a cell whole or not at all, replacing what an older request left there.

    The older cell is there until the new one is: where two folders cannot change places in one step, it waits beside
    them for that moment, and is read from there.

    Raises
    ------
    UserError
        The folder cannot be written (full disk, no permission).
    """
    new, old = (folder.with_name(f".{folder.name}.{os.getpid()}.{state}") for state in ("new", "old"))
    try:
        for leftover in (new, old):
            _remove(leftover)
        new.mkdir(parents=True)
        pq.write_table(
            requests,
            new / REQUESTS_FILE,
            compression="zstd",
            use_dictionary=["prompt_id", "finish_reason"],
            column_encoding={"event_us.list.element": "DELTA_BINARY_PACKED"},
        )
        written = record.model_copy(
            update={"requests_sha256": hashlib.sha256((new / REQUESTS_FILE).read_bytes()).hexdigest()}
        )
        (new / RECORD_FILE).write_text(written.model_dump_json(indent=1) + "\n", encoding="utf-8")
        if folder.is_dir() and whole.exchange(new, folder):
            _remove(new)
            return
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
        _remove(old)
    except OSError as error:
        _remove(new)
        _put_back(old, folder)
        raise UserError(
            f"the cell could not be written ({error.strerror or error})",
            "free the disk or mend its permissions",
            file=folder,
        ) from None


def clear(arm: Path) -> None:
    """Remove what interrupted writes left in an arm's folder; only for a run that holds the folder's lock.

    An older cell whose new one had not come yet is put back.
    """
    for old in arm.glob(".*.old"):
        _put_back(old, arm / old.name[1:].rsplit(".", 2)[0])
    for state in ("new", "old"):
        for leftover in arm.glob(f".*.{state}"):
            _remove(leftover)


def read_record(folder: Path) -> CellRecord:
    """Return what was asked of the cell in a folder and what happened, without its requests.

    Raises
    ------
    UserError
        There is none, or it is of a shape this version does not know.
    """
    file = _place(folder) / RECORD_FILE
    if not file.is_file():
        raise UserError("no such file", REMEDY, file=file)
    try:
        return CellRecord.model_validate_json(file.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or None
        raise UserError(f"not a cell record ({first['msg']})", REMEDY, file=file, key=key) from None


def read(folder: Path) -> Cell:
    """Return the cell in a folder.

    Raises
    ------
    UserError
        The folder is half written or of a shape this version does not know.
    """
    folder = _place(folder)
    record, requests_file = read_record(folder), folder / REQUESTS_FILE
    if not requests_file.is_file():
        raise UserError("no such file", REMEDY, file=requests_file)
    try:
        content = requests_file.read_bytes()
        if record.requests_sha256 not in (None, hashlib.sha256(content).hexdigest()):
            raise ValueError("its content is not what was written")
        table = _parsed(content)
    except DAMAGE as error:
        problem = (str(error) or type(error).__name__).splitlines()[0]
        raise UserError(f"not a request table ({problem})", REMEDY, file=requests_file) from None
    return Cell(record, to_frame(table))


def to_table(log: CellLog, warm_up: int) -> pa.Table:
    """Return the answers of a cell as a table of `REQUEST_COLUMNS`.

    Parameters
    ----------
    log : CellLog
        What the load kept.
    warm_up : int
        How many of the first answers belong to the warm-up.
    """
    answers = log.answers
    offsets_us = [_offsets_us(answer) for answer in answers]
    tokens = [np.asarray(answer.event_tokens, dtype=np.int16) for answer in answers]
    columns = {
        "request": pa.array(range(len(answers)), pa.int32()),
        "prompt_id": pa.array([answer.prompt.id for answer in answers], pa.string()),
        "warm_up": pa.array([index < warm_up for index in range(len(answers))], pa.bool_()),
        "prompt_tokens": pa.array([answer.prompt_tokens for answer in answers], pa.int32()),
        "output_tokens": pa.array([answer.output_tokens for answer in answers], pa.int32()),
        "start_s": pa.array([answer.start_s - log.start_s for answer in answers], pa.float64()),
        "end_s": pa.array([None if a.end_s is None else a.end_s - log.start_s for a in answers], pa.float64()),
        "event_us": _lists(offsets_us, np.int32, pa.int32()),
        "event_tokens": _lists(tokens, np.int16, pa.int16()),
        "finish_reason": pa.array([answer.finish_reason for answer in answers], pa.string()),
        "error": pa.array([answer.error for answer in answers], pa.string()),
        "text": pa.array([answer.text for answer in answers], pa.string()),
    }
    return pa.Table.from_pydict(columns, schema=REQUEST_COLUMNS)


def _parsed(content: bytes) -> pa.Table:
    return pq.read_table(pa.BufferReader(content)).cast(REQUEST_COLUMNS)


def _place(folder: Path) -> Path:
    """Return where a cell is: its folder, or the one in which an interrupted write left the older cell."""
    if not folder.exists():
        return next((old for old in folder.parent.glob(f".{folder.name}.*.old") if old.is_dir()), folder)
    return folder


def _put_back(old: Path, folder: Path) -> None:
    with suppress(OSError):
        if old.is_dir() and not folder.exists():
            old.rename(folder)


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):  # a file where a folder should be
        path.unlink(missing_ok=True)


def _offsets_us(answer: Answer) -> npt.NDArray[np.int32]:
    since_start = np.asarray(answer.event_s, dtype=np.float64) - answer.start_s
    return np.rint(since_start * 1e6).astype(np.int32)


def _lists(rows: Sequence[npt.NDArray[np.generic]], dtype: npt.DTypeLike, element: pa.DataType) -> pa.ListArray:
    ends = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int32)
    values = np.concatenate(rows) if rows else np.empty(0, dtype)
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(values, element))


def to_frame(table: pa.Table) -> pd.DataFrame:
    """Return a table of `REQUEST_COLUMNS` as `speclab.record.cell.Cell` holds it: one array for each row's events."""
    lists = {name: _rows(table.column(name).combine_chunks()) for name in ("event_us", "event_tokens")}
    frame: pd.DataFrame = table.drop_columns(list(lists)).to_pandas()
    for name, rows in lists.items():
        frame[name] = rows
    ordered: pd.DataFrame = frame[REQUEST_COLUMNS.names]
    return ordered


def _rows(column: pa.ListArray) -> pd.Series[Any]:
    ends = column.offsets.to_numpy()
    values = column.values.to_numpy()
    return pd.Series([values[a:b] for a, b in itertools.pairwise(ends)], dtype=object)
