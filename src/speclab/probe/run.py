"""A whole probe: measure, and record on what."""

from __future__ import annotations

import torch

from speclab.probe import attention, devices
from speclab.probe.measure import Progress, measure
from speclab.probe.plan import Plan
from speclab.probe.record import ProbeRecord
from speclab.record import provenance


def run(
    plan: Plan, kind: devices.Kind, seconds: float, *, graphs: bool = True, progress: Progress | None = None
) -> ProbeRecord:
    """Measure a plan and return its record; arguments and errors as in `speclab.probe.measure.measure`."""
    started_at = provenance.now()
    before = devices.facts(kind)["load_average"]
    outcome = measure(plan, kind, seconds, graphs=graphs, progress=progress)
    dtype = {"bfloat16": torch.bfloat16, "float32": torch.float32}[plan.dtype]
    return ProbeRecord(
        model=plan.model,
        layers=plan.layers,
        dtype=plan.dtype,
        device=devices.slug(kind),
        kind=kind,
        attention="flash" if attention.has_flash(dtype, kind) else "products",
        threads=torch.get_num_threads(),
        usable_bytes=plan.usable_bytes,
        budget_s=seconds,
        took_s=outcome.took_s,
        measured=tuple(outcome.measured),
        again=outcome.again,
        left_out=outcome.left_out,
        made=provenance.made(started_at, {"load_average_before": before, **devices.facts(kind)}),
    )
