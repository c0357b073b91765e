"""The matrix of presets: what each changes, workload by workload, as a table whose colour only repeats its signs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd
from IPython.display import HTML

from speclab.book import badge, widget
from speclab.findings.pareto import Better


@dataclass(frozen=True, slots=True)
class Metric:
    """A column of the matrix: its name in tables, what the reader sees, and which direction is the better one."""

    key: str
    label: str
    unit: str
    better: Better
    factor: float = 1.0
    """What a value in the tables is multiplied by for the reader's unit."""


METRICS = (
    Metric("goodput_per_gpu", "goodput", "req/s per GPU", "higher"),
    Metric("usd_per_mtok", "cost", "$ per million tokens", "lower"),
    Metric("j_per_tok", "energy", "J per token", "lower"),
    Metric("ttft_p99_s", "TTFT p99", "s", "lower"),
    Metric("tpot_p99_s", "TPOT p99", "ms", "lower", 1e3),
    Metric("itl_p99_s", "ITL p99", "ms", "lower", 1e3),
)
"""Capacity and what it costs first, then latency at the reference load."""


def html(rows: pd.DataFrame, caption: str, workloads: Mapping[str, str]) -> str:
    """Return one preset on one device as an HTML table: a row a workload, a column a metric.

    Parameters
    ----------
    rows : pd.DataFrame
        ``workload, metric, change, verdict, size, mark`` as in `chapter10.sweep`: `change` relative to
        the baseline (null: there is none), whether it is for the better, its size band (arrows), its caveats.
    caption : str
        What the reader sees, as HTML: preset, device.
    workloads : mapping
        Name in the table to name for the reader, in order.

    Raises
    ------
    LookupError
        A cell occurs twice, or not at all.
    """
    cells = {(row["workload"], row["metric"]): row for row in rows.to_dict("records")}
    expected = {(workload, metric.key) for workload in workloads for metric in METRICS}
    if len(cells) != len(rows) or not expected <= set(cells):
        raise LookupError(f"not one row for each of {len(workloads)} workloads and {len(METRICS)} metrics")
    lines = [
        f'<th scope="row">{escape(name)}</th>'
        + "".join(
            _cell(cells[key, metric.key], _flips([cells[workload, metric.key] for workload in workloads]))
            for metric in METRICS
        )
        for key, name in workloads.items()
    ]
    head = "".join(f'<th scope="col">{escape(metric.label)}</th>' for metric in METRICS)
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return (
        f'<p class="table-caption">{caption}</p>\n<div class="wide-table">\n<table class="dataframe matrix">\n'
        f'<thead><tr><th scope="col">workload</th>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>'
    )


def show(rows: pd.DataFrame, caption: str, workloads: Mapping[str, str]) -> HTML:
    """Return the table for display in a notebook; the arguments are those of `html`."""
    return HTML(html(rows, escape(caption), workloads))  # type: ignore[no-untyped-call]


def keep(tables: Mapping[str, pd.DataFrame], name: str, workloads: Mapping[str, str], source: str) -> None:
    """Write tables, each under its caption and the badge of its numbers, to ``book/widgets/<name>.html``."""
    label = badge.html(source)
    captioned = [html(rows, f"{label} {escape(caption)}", workloads) for caption, rows in tables.items()]
    widget.write(name, "\n".join(captioned) + "\n")


def _flips(row: Sequence[Mapping[Hashable, Any]]) -> bool:
    """Return whether a metric gets better on one workload and worse on another."""
    return {"better", "worse"} <= {cell["verdict"] for cell in row}


def _cell(cell: Mapping[Hashable, Any], flips: bool) -> str:
    change, verdict = cell["change"], cell["verdict"]
    if pd.isna(change):
        return "<td>–</td>"
    sign = {"better": "✓", "worse": "✗"}.get(verdict)
    marks = "" if pd.isna(cell["mark"]) else cell["mark"].replace("alpha", "α").replace(" ", "")
    shown = [
        f'<span role="img" aria-label="{verdict}">{sign}</span>' if sign else "",
        f'<span class="arrows" aria-hidden="true">{("↑" if change > 0 else "↓") * int(cell["size"])}</span>',
        f"{change:+.0%}",
        f'<span class="marks">{escape(marks)}</span>',
    ]
    return f'<td class="{verdict}{" flips" if flips and sign else ""}">{" ".join(shown)}</td>'
