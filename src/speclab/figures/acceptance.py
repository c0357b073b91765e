"""How often the target agrees: over concurrency, and position by position."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from speclab.figures.panels import (
    WIDE,
    arm_handles,
    arm_lines,
    badge,
    concurrency_axis,
    failed_note,
    in_order,
    pick,
    source_of,
    workload_panels,
)
from speclab.figures.style import ARMS, WORKLOADS, style_of, styled


@styled
def acceptance_over_concurrency(findings: pd.DataFrame) -> Figure:
    """Draw the acceptance length that the server reports over concurrency."""
    rows = pick(findings, "reported_acceptance_length")
    arms = in_order(rows["arm"], ARMS)
    figure, panels = workload_panels(rows)
    for index, (workload, axis) in enumerate(panels.items()):
        here = rows[rows["workload"] == workload]
        arm_lines(axis, here, arms)
        concurrency_axis(axis, here["concurrency"])
        axis.set_ylim(1.0, rows["value"].max() * 1.12)
        if index == 0:
            axis.set_ylabel("tokens per drafted pass")
    figure.legend(handles=arm_handles(arms), loc="outside upper left", ncols=len(arms), fontsize=9.5)
    badge(figure, f"{failed_note(rows)}{source_of(rows)}")
    return figure


@styled
def acceptance_by_position(findings: pd.DataFrame, arms: tuple[str, ...]) -> Figure:
    """Draw the share of drafts accepted up to each position, a panel for each arm, a line for each workload."""
    rows = pick(findings, "acceptance_by_position", concurrency=findings["concurrency"].min())
    shown = [arm for arm in arms if arm in set(rows["arm"])]
    figure = Figure(figsize=(WIDE[0], 3.6), layout="constrained")
    axes = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for axis, arm in zip(axes, shown, strict=True):
        style = style_of(arm)
        for marker, line, workload in zip(
            "os^", ("-", "--", "-."), in_order(rows["workload"], WORKLOADS), strict=False
        ):
            here = rows[(rows["arm"] == arm) & (rows["workload"] == workload)].sort_values("position")
            if here.empty:
                continue
            axis.plot(here["position"], here["value"], color=style.colour, marker=marker, linestyle=line)
            if here["low"].notna().all():
                axis.fill_between(here["position"], here["low"], here["high"], color=style.colour, alpha=0.15, lw=0)
            axis.annotate(
                WORKLOADS.get(workload, workload).lower(),
                (here["position"].iloc[-1], here["value"].iloc[-1]),
                xytext=(7, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
                color=style.colour,
            )
        axis.set_title(style.label)
        axis.set_xticks(sorted(rows[rows["arm"] == arm]["position"].unique()))
        axis.set_xlabel("draft position")
        axis.set_ylim(0, 1)
        axis.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes[0].set_ylabel("drafts accepted up to here")
    badge(figure, f"one request in flight · {source_of(rows)}")
    return figure
