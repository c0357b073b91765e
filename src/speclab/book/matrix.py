"""The matrix of levers: what each changes, workload by workload, as a table that colour only repeats.

Bands and marks are those of the public site *inference-tradeoffs-explained*: within 2% is "same", then one arrow to
10%, two to 50%, three beyond.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Literal

import pandas as pd
from IPython.display import HTML

SAME = 0.02
BANDS = (0.10, 0.50)
"""Where a second and a third arrow begin, as relative changes."""

Better = Literal["higher", "lower"]
Verdict = Literal["better", "worse", "same"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A column of the matrix: its name in tables, what the reader sees, and which direction is the better one."""

    key: str
    label: str
    unit: str
    better: Better


METRICS = (
    Metric("goodput_per_gpu", "goodput per GPU", "req/s", "higher"),
    Metric("usd_per_mtok", "cost", "$ per million tokens", "lower"),
    Metric("j_per_tok", "energy", "J per token", "lower"),
    Metric("ttft_p99_s", "TTFT p99", "s", "lower"),
    Metric("tpot_p99_s", "TPOT p99", "s", "lower"),
    Metric("itl_p99_s", "ITL p99", "s", "lower"),
)
"""Capacity and what it costs first, then latency at the reference load."""


def verdict(change: float, better: Better) -> Verdict:
    """Return whether a relative change is for the better, beyond `SAME`."""
    if abs(change) <= SAME:
        return "same"
    return "better" if (change > 0) == (better == "higher") else "worse"


def arrows(change: float) -> str:
    """Return none to three arrows: the direction of a relative change and the band of its size."""
    if abs(change) <= SAME:
        return ""
    return ("↑" if change > 0 else "↓") * (1 + sum(abs(change) >= band for band in BANDS))


def html(rows: pd.DataFrame, caption: str, workloads: Mapping[str, str]) -> str:
    """Return one lever on one device as an HTML table: a row a workload, a column a metric.

    Parameters
    ----------
    rows : pd.DataFrame
        ``workload, metric, change, mark``: `change` relative to the baseline (null: there is none), `mark` its caveats.
    caption : str
        What the reader sees; lever, device and where the numbers come from.
    workloads : mapping
        Name in the table to name for the reader, in order.

    Raises
    ------
    LookupError
        A cell occurs twice, or not at all.
    """
    cells = rows.set_index(["workload", "metric"])[["change", "mark"]]
    wanted = pd.MultiIndex.from_product([workloads, [metric.key for metric in METRICS]])
    if not cells.index.is_unique or not wanted.isin(cells.index).all():
        raise LookupError(f"not one row for each of {len(workloads)} workloads and {len(METRICS)} metrics")
    flips = {metric.key for metric in METRICS if _flips(cells.xs(metric.key, level="metric")["change"], metric.better)}
    head = "".join(f'<th scope="col">{escape(metric.label)}</th>' for metric in METRICS)
    body = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(_cell(*cells.loc[(key, metric.key)], metric, flips=metric.key in flips) for metric in METRICS)
        + "</tr>"
        for key, name in workloads.items()
    )
    return (
        f'<p class="table-caption">{caption}</p>\n<div class="wide-table">\n<table class="dataframe matrix">\n'
        f'<thead><tr><th scope="col">workload</th>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>'
    )


def show(rows: pd.DataFrame, caption: str, workloads: Mapping[str, str]) -> HTML:
    """Return the table for display in a notebook; the arguments are those of `html`."""
    return HTML(html(rows, escape(caption), workloads))


def _flips(changes: pd.Series, better: Better) -> bool:
    """Return whether a metric gets better on one workload and worse on another."""
    return {"better", "worse"} <= {verdict(change, better) for change in changes.dropna()}


def _cell(change: float, mark: str | None, metric: Metric, *, flips: bool) -> str:
    if pd.isna(change):
        return "<td>–</td>"
    found = verdict(change, metric.better)
    sign = {"better": "✓", "worse": "✗"}.get(found)
    shown = [
        f'<span role="img" aria-label="{found}">{sign}</span>' if sign else "",
        f'<span class="arrows" aria-hidden="true">{arrows(change)}</span>',
        f"{change:+.0%}",
        f'<span class="marks">{escape(mark if isinstance(mark, str) else "")}</span>',
    ]
    return f'<td class="{found}{" flips" if flips and found != "same" else ""}">{" ".join(shown)}</td>'
