"""The record of a probe: what each point took, on which device, and what was left out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import ValidationError

from speclab import paths, whole
from speclab.config import Frozen
from speclab.errors import UserError
from speclab.probe.plan import VALUE_BYTES, Dtype, cut
from speclab.probe.points import Part, Point
from speclab.record.schema import Made
from speclab.roofline.forward_pass import work
from speclab.roofline.transformers import BYTES_PER_VALUE, Transformer

SCHEMA_VERSION = 1
SPREAD = (0.1, 0.9)
"""Quantiles of the repeats that are kept beside the median."""


class Timed(Frozen):
    """What one point took: the median of its repeats, and the range of most of them, s."""

    part: Part
    rows: int
    positions: int
    context: int
    tokens: int
    median_s: float
    low_s: float
    high_s: float
    repeats: int
    graph: bool
    """Whether the pass was the replay of a CUDA graph."""

    @property
    def point(self) -> Point:
        """What was timed."""
        return Point(self.part, self.rows, self.positions, self.context)


class LeftOut(Frozen):
    """A point of the plan that was not timed, and whether memory or time ran short."""

    part: Part
    rows: int
    positions: int
    context: int
    reason: Literal["memory", "time"]


class ProbeRecord(Frozen):
    """A whole probe."""

    schema_version: int = SCHEMA_VERSION
    model: Transformer
    """The whole model; `layers` of its layers were run."""
    layers: int
    dtype: Dtype
    device: str
    """Slug of the device, as in the record's path."""
    kind: Literal["cpu", "cuda"]
    attention: Literal["flash", "products"]
    """Which implementation in `speclab.probe.attention`."""
    threads: int
    usable_bytes: float
    budget_s: float
    took_s: float
    measured: tuple[Timed, ...]
    """In the order of measuring."""
    again: Timed
    """The first point once more, at the end."""
    left_out: tuple[LeftOut, ...]
    made: Made

    @property
    def source(self) -> str:
        """The badge that every number from this record carries."""
        return f"measured (PyTorch {self.made.packages.get('torch', 'of unknown version')}, {self.device})"

    @property
    def drift(self) -> float:
        """How much slower the first point was at the end than at the beginning: 0.05 is 5% slower."""
        return self.again.median_s / self.measured[0].median_s - 1


def timed(point: Point, seconds: list[float], *, graph: bool) -> Timed:
    """Summarise the repeats of a point."""
    low, median, high = np.quantile(seconds, (SPREAD[0], 0.5, SPREAD[1]))
    return Timed(
        part=point.part,
        rows=point.rows,
        positions=point.positions,
        context=point.context,
        tokens=point.tokens,
        median_s=float(median),
        low_s=float(low),
        high_s=float(high),
        repeats=len(seconds),
        graph=graph,
    )


def left_out(points: list[Point] | tuple[Point, ...], reason: Literal["memory", "time"]) -> tuple[LeftOut, ...]:
    """Return points as what was left out for a reason."""
    return tuple(
        LeftOut(part=point.part, rows=point.rows, positions=point.positions, context=point.context, reason=reason)
        for point in points
    )


def frame(record: ProbeRecord) -> pd.DataFrame:
    """Return a row for each point that was timed.

    Returns
    -------
    DataFrame
        ``shape``, ``device``, ``dtype``, ``layers``, ``layers_of_model``; the columns of `Timed`; and

        - ``whole_s``: what the whole model would take, s. Equal to ``median_s`` where no layer was cut; else the time
          beyond the LM head's own is scaled up. Missing where the head was not timed at as many tokens.
        - ``flop_per_s``, ``byte_per_s``: the work of `speclab.roofline.forward_pass` over the time. None for sampling.
    """
    rows = pd.DataFrame([timed.model_dump() for timed in record.measured])
    same = {
        "shape": record.model.slug, "device": record.device, "dtype": record.dtype,
        "layers": record.layers, "layers_of_model": record.model.layers,
    }  # fmt: skip
    flops, moved = _work(record)
    seconds = rows["median_s"].to_numpy(np.float64)
    rows = rows.assign(whole_s=_whole_s(record, rows), flop_per_s=flops / seconds, byte_per_s=moved / seconds)
    return pd.concat([pd.DataFrame(same, index=rows.index), rows], axis=1)


def file_of(runs: Path, device: str, shape: str, dtype: Dtype) -> Path:
    """Return where a record is kept: ``<runs>/probe-<device>/<shape>/<dtype>.json``."""
    return runs / f"probe-{device}" / shape / f"{dtype}.json"


def make_room(file: Path) -> None:
    """Make the folder of a record that is still to be measured.

    Raises
    ------
    UserError
        It cannot be written; better to fail now than once the time is spent.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.is_dir():
            raise IsADirectoryError(0, "a folder of this name is there")
        if not os.access(file.parent, os.W_OK):
            raise PermissionError(0, "no permission")
    except OSError as error:
        problem = f"the record could not be written ({error.strerror or error})"
        raise UserError(problem, "give another file to --out", file=file) from None


def write(file: Path, record: ProbeRecord) -> None:
    """Write a record whole or not at all.

    Raises
    ------
    UserError
        The folder cannot be written.
    """
    whole.write(file, record.model_dump_json(indent=1) + "\n", "the probe's record")


def read(file: Path) -> ProbeRecord:
    """Return the record in a file.

    Raises
    ------
    UserError
        There is none, or it is damaged or of a shape that this version does not know.
    """
    try:
        return ProbeRecord.model_validate_json(file.read_bytes())
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror})", "make it: speclab probe SHAPE", file=file) from None
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or None
        raise UserError(f"not a probe's record ({first['msg']})", "make it again", file=file, key=key) from None


def found(runs: Path | None = None) -> list[ProbeRecord]:
    """Return all records that are kept, in the order of their paths."""
    return [read(file) for file in sorted((runs or paths.runs()).glob("probe-*/*/*.json"))]


def _work(record: ProbeRecord) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return operations and bytes of each row; a head's are those of its matrix, sampling's are unknown."""
    shape = cut(record.model, record.layers)
    flops, moved = [], []
    for point in (timed.point for timed in record.measured):
        if point.part == "step":
            pass_work = work(shape, float(point.tokens), point.attended, float(point.kv_tokens))
            flops.append(pass_work.flops)
            moved.append(pass_work.bytes / BYTES_PER_VALUE)
        else:
            is_head = point.part == "head"
            flops.append(2.0 * shape.head_parameters * point.tokens if is_head else np.nan)
            moved.append(float(shape.head_parameters) if is_head else np.nan)
    return np.array(flops), np.array(moved) * VALUE_BYTES[record.dtype]


def _whole_s(record: ProbeRecord, rows: pd.DataFrame) -> NDArray[np.float64]:
    seconds = rows["median_s"].to_numpy(np.float64)
    if record.layers == record.model.layers:
        return seconds
    heads = rows[rows["part"] == "head"].sort_values("tokens")
    head_s = np.interp(rows["tokens"], heads["tokens"], heads["median_s"], left=np.nan, right=np.nan)
    scaled_s = head_s + (seconds - head_s) * record.model.layers / record.layers
    return np.where(rows["part"] == "step", scaled_s, seconds)
