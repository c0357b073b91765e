"""Plans and records of a probe as text for the terminal."""

from __future__ import annotations

from dataclasses import asdict

import pandas as pd

from speclab.errors import UserError
from speclab.probe.calibration import mean_and_worst, of_passes
from speclab.probe.plan import GB, VALUE_BYTES, Plan
from speclab.probe.points import Point
from speclab.probe.record import ProbeRecord
from speclab.roofline.transformers import BYTES_PER_VALUE


def planned(plan: Plan) -> pd.DataFrame:
    """Return a row for each point of a plan, in the order of measuring: when it is timed, and the point."""
    groups = {"always": plan.core, "while there is time": plan.beyond, "never: memory": plan.too_big}
    rows = [{"timed": when, **_flat(point)} for when, points in groups.items() for point in points]
    same = {"shape": plan.model.slug, "layers": plan.layers, "layers_of_model": plan.model.layers}
    return pd.DataFrame([{**same, **row} for row in rows])


def overview(plan: Plan, kind: str, seconds: float) -> str:
    """Return what a probe would do, in a few lines."""
    lines = [
        f"{_layers_of(plan.model.slug, plan.layers, plan.model.layers)} in {plan.dtype} on {kind}: "
        f"{plan.weight_bytes / GB:.1f} GB of weights, {plan.usable_bytes / GB:.1f} GB may be used",
        f"{len(plan.core)} points always, then as many of {len(plan.beyond)} more as fit into {seconds:g} s:",
    ]
    table = planned(plan)
    counts = table[table["part"] == "step"].pivot_table(
        index=["timed", "positions"], columns="context", values="rows", aggfunc=_span, sort=False, fill_value="-"
    )
    counts.columns.name = "rows at context"
    return "\n".join((*lines, "", counts.to_string()))


def result(record: ProbeRecord, rows: pd.DataFrame) -> str:
    """Return a record as tables: milliseconds per step and the rates reached, by new positions and context."""
    steps = rows[rows["part"] == "step"].assign(ms=lambda frame: frame["median_s"] * 1e3)
    title = _layers_of(record.model.slug, record.layers, record.model.layers)
    lines = [f"{title} in {record.dtype}, {record.source}", "", "milliseconds a step", _wide(steps, "ms", "{:.2f}")]
    lines += ["", "GB/s of weights and cache", _wide(steps.assign(gb=steps["byte_per_s"] / GB), "gb", "{:.3g}")]
    lines += ["", "TFLOP/s", _wide(steps.assign(tera=steps["flop_per_s"] / 1e12), "tera", "{:.3g}")]
    parts = rows[rows["part"] != "step"].assign(ms=lambda frame: frame["median_s"] * 1e3)
    shown = parts.pivot(index="part", columns="tokens", values="ms")
    lines += ["", "milliseconds of a part, by tokens", shown.to_string(float_format="{:.3f}".format, na_rep="-")]
    return "\n".join((*lines, "", fitted(record)))


def fitted(record: ProbeRecord) -> str:
    """Return the calibrated model's fit to a record in one line, or why there is none."""
    try:
        passes = of_passes(record)
    except UserError as error:
        return str(error)
    mean, worst, where = mean_and_worst(passes)
    parameters = passes.parameters
    byte_per_s = parameters.byte_per_s * VALUE_BYTES[record.dtype] / BYTES_PER_VALUE
    return (
        f"fitted to these: {parameters.overhead_s * 1e3:.3g} ms a pass, {byte_per_s / GB:.3g} GB/s, "
        f"{parameters.flop_per_s / 1e12:.3g} TFLOP/s; off by {mean:.0%} on average, {worst:+.0%} at worst ({where})"
    )


def _wide(steps: pd.DataFrame, column: str, form: str) -> str:
    wide = steps.pivot(index=["positions", "rows"], columns="context", values=column)
    wide.columns.name = "context"
    return wide.to_string(float_format=form.format, na_rep="-")


def _layers_of(slug: str, layers: int, of: int) -> str:
    return slug if layers == of else f"{layers} of {of} layers of {slug}"


def _span(rows: pd.Series[int]) -> str:
    return ", ".join(map(str, sorted(rows)))


def _flat(point: Point) -> dict[str, object]:
    return {**asdict(point), "tokens": point.tokens}
