"""What the explorer shows: every configuration of the sweep with its metrics, as data for a script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from speclab.replications.chapter10.widgets.matrix import METRICS, Metric

EXPLORED = (
    *METRICS,
    Metric("tok_s", "output tokens, all GPUs", "tok/s", "higher"),
    Metric("ttft_p50_s", "TTFT p50", "s", "lower"),
    Metric("tpot_p50_s", "TPOT p50", "ms", "lower", 1e3),
    Metric("tokens_per_pass", "tokens per pass", "", "higher"),
    Metric("draft_share", "share of time drafting", "", "lower"),
)
"""The metrics that either axis can show."""

FILTERS = {
    "slo_4x": "four times the SLOs",
    "slo_2x": "twice the SLOs",
    "slo_1x": "the SLOs",
    "slo_0_5x": "half the SLOs",
}
"""Columns of attainment, from lenient to strict."""


def exploration(
    points: pd.DataFrame,
    *,
    workloads: Mapping[str, str],
    devices: Mapping[str, str],
    presets: Mapping[str, tuple[str, str]],
    needed: float,
    first: str,
) -> dict[str, Any]:
    """Return a sweep's configurations, for the widget ``explorer``.

    Parameters
    ----------
    points : pd.DataFrame
        ``chapter10.points()``: ``device, workload, lever``, the metrics of `EXPLORED`, the columns of
        `FILTERS`. A missing metric is null.
    workloads, devices : mapping
        Name in the table to name for the reader, in order; other workloads and devices are left out.
    presets : mapping
        Name in the table to name for the reader and colour, in order.
    needed : float
        Share of requests that must meet both SLOs for a configuration to pass a filter.
    first : str
        The workload that is shown first.
    """
    known = points[
        points["workload"].isin(list(workloads))
        & points["device"].isin(list(devices))
        & points["lever"].isin(list(presets))
    ]
    return {
        "metrics": [
            {"key": metric.key, "label": metric.label, "unit": metric.unit, "better": metric.better}
            for metric in EXPLORED
        ],
        "workloads": _named(workloads),
        "devices": _named(devices),
        "presets": [{"key": key, "label": label, "colour": colour} for key, (label, colour) in presets.items()],
        "filters": [{"key": "any", "label": "no filter"}, *_named(FILTERS)],
        "needed": needed,
        "points": [
            {
                "workload": row["workload"],
                "device": row["device"],
                "lever": row["lever"],
                "values": {metric.key: _number(row[metric.key], metric.factor) for metric in EXPLORED},
                "attainment": {key: _number(row[key]) for key in FILTERS},
            }
            for row in known.to_dict("records")
        ],
        "first": {
            "x": "tpot_p99_s",
            "y": "goodput_per_gpu",
            "workload": first,
            "devices": list(devices),
            "filter": "any",
        },
    }


def _named(names: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "label": label} for key, label in names.items()]


def _number(value: Any, factor: float = 1.0) -> float | None:
    return None if pd.isna(value) else factor * float(value)
