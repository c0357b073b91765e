"""Where the spare compute was: the baseline's own curve, and a check of its stated occupancy."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from speclab.figures.panels import (
    WIDE,
    badge,
    concurrency_axis,
    failed_note,
    failed_points,
    nothing_to_draw,
    pick,
    source_of,
)
from speclab.figures.style import BLACK, BLUE, GREY, VERMILION, styled
from speclab.lab import BASELINE


@styled
def spare_compute(findings: pd.DataFrame, ridge_tokens: float | None = None, workload: str = "chat") -> Figure:
    """Draw the baseline's throughput over concurrency against what it would be if more rows were free.

    Parameters
    ----------
    findings : pd.DataFrame
        A lab's findings.
    ridge_tokens : float, optional
        Tokens per pass at which the weight multiply becomes compute-bound (peak FLOP/s over peak bytes/s), where the
        device's peaks are known.
    workload : str
        Which workload.
    """
    rows = pick(findings, "system_throughput", arm=BASELINE, workload=workload).sort_values("concurrency")
    if rows.empty:
        return nothing_to_draw()
    first = rows.iloc[0]
    figure = Figure(figsize=(WIDE[0] * 0.72, 4.0), layout="constrained")
    axis = figure.subplots()
    axis.plot(rows["concurrency"], rows["value"], color=BLACK, marker="o")
    failed_points(axis, rows, "o")
    linear = first["value"] * rows["concurrency"] / first["concurrency"]
    axis.plot(rows["concurrency"], linear, color=GREY, linestyle=":", linewidth=1.2)
    concurrency_axis(axis, rows["concurrency"])
    axis.set_yscale("log")
    axis.set_ylabel("system throughput, tok/s")
    middle = rows.iloc[len(rows) // 2]
    axis.annotate(
        "if rows were free",
        (middle["concurrency"], linear.iloc[len(rows) // 2]),
        xytext=(-8, 6), textcoords="offset points", ha="right", fontsize=9, color=GREY,
    )  # fmt: skip
    axis.annotate(
        "baseline", (middle["concurrency"], middle["value"]), xytext=(8, -12), textcoords="offset points", fontsize=9
    )
    if ridge_tokens is not None:
        axis.axvline(ridge_tokens, color=VERMILION, linewidth=1.2, linestyle="--")
        axis.annotate(
            f"ridge: {ridge_tokens:.0f} tokens a pass",
            (ridge_tokens, first["value"]),
            xytext=(-5, 2), textcoords="offset points", rotation=90, ha="right", fontsize=9, color=VERMILION,
        )  # fmt: skip
    badge(figure, f"{failed_note(rows)}{source_of(rows)}")
    return figure


@styled
def occupancy(findings: pd.DataFrame, published: pd.DataFrame, workload: str = "chat") -> Figure:
    """Draw occupancy over concurrency: by events in a fixed window, and as the report counted it, with its figures.

    Parameters
    ----------
    findings : pd.DataFrame
        A lab's findings.
    published : pd.DataFrame
        Published occupancies, columns ``concurrency``, ``value`` and ``source``; may be empty.
    workload : str
        Which workload.
    """
    counted = pick(findings, "occupancy", arm=BASELINE, workload=workload)
    if counted.empty:
        return nothing_to_draw()
    figure = Figure(figsize=(WIDE[0] * 0.72, 3.8), layout="constrained")
    axis = figure.subplots()
    series = (
        ("counted by event in a fixed window", "occupancy", BLUE, "o", "-"),
        ("counted as the report did", "activity_occupancy", VERMILION, "s", "--"),
    )
    for label, finding, colour, marker, line in series:
        rows = pick(findings, finding, arm=BASELINE, workload=workload).sort_values("concurrency")
        axis.plot(
            rows["concurrency"], rows["value"] / rows["concurrency"],
            color=colour, marker=marker, linestyle=line, label=label,
        )  # fmt: skip
        failed_points(axis, rows.assign(value=rows["value"] / rows["concurrency"]), marker)
    sources = [failed_note(counted) + source_of(findings)]
    if len(published):
        axis.plot(
            published["concurrency"], published["value"] / published["concurrency"],
            color=BLACK, marker="x", linestyle="none", label="published",
        )  # fmt: skip
        sources += [f"published: {source}" for source in published["source"].unique()]
    axis.axhline(1.0, color="black", linewidth=1.0)
    concurrency_axis(axis, pick(findings, "occupancy", arm=BASELINE)["concurrency"])
    axis.set_ylim(0.8, 1.05)
    axis.set_ylabel("occupancy / requests in flight")
    axis.legend(fontsize=9, loc="lower left")
    badge(figure, " · ".join(sources))
    return figure
