"""How often the target agrees: over concurrency, and position by position."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from speclab.figures.panels import (
    WIDE,
    arm_legend,
    arm_lines,
    badge,
    concurrency_axis,
    drawn,
    failed_note,
    failed_points,
    in_flight,
    in_order,
    nothing_to_draw,
    pick,
    source_of,
    spread,
    workload_panels,
)
from speclab.figures.style import WORKLOADS, Styles, styled

LABEL_ROOM = 0.06
"""Height that a line's label needs, as a share of the axis from 0 to 1."""


@styled
def acceptance_over_concurrency(findings: pd.DataFrame, styles: Styles) -> Figure:
    """Draw the acceptance length that the server reports over concurrency."""
    rows = pick(findings, "reported_acceptance_length")
    if rows.empty:
        return nothing_to_draw()
    arms = drawn(rows, styles)
    figure, panels = workload_panels(rows)
    for index, (workload, axis) in enumerate(panels.items()):
        here = rows[rows["workload"] == workload]
        arm_lines(axis, here, arms)
        concurrency_axis(axis, here["concurrency"])
        axis.set_ylim(1.0, rows["value"].max() * 1.12)
        if index == 0:
            axis.set_ylabel("tokens per drafted step")
    arm_legend(figure, arms)
    badge(figure, f"{failed_note(rows)}{source_of(rows)}")
    return figure


@styled
def acceptance_by_position(findings: pd.DataFrame, styles: Styles, arms: tuple[str, ...]) -> Figure:
    """Draw the share of drafts accepted up to each position, a panel for each arm, a line for each workload."""
    rows = pick(findings, "acceptance_by_position", concurrency=findings["concurrency"].min())
    shown = [arm for arm in arms if arm in set(rows["arm"])]
    if not shown:
        return nothing_to_draw()
    figure = Figure(figsize=(WIDE[0], 3.6), layout="constrained")
    axes = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for axis, arm in zip(axes, shown, strict=True):
        style = styles[arm]
        ends = []
        for marker, line, workload in zip(
            "os^", ("-", "--", "-."), in_order(rows["workload"], WORKLOADS), strict=False
        ):
            here = rows[(rows["arm"] == arm) & (rows["workload"] == workload)].sort_values("position")
            if here.empty:
                continue
            axis.plot(here["position"], here["value"], color=style.colour, marker=marker, linestyle=line)
            if here["low"].notna().all():
                axis.fill_between(here["position"], here["low"], here["high"], color=style.colour, alpha=0.15, lw=0)
            failed_points(axis, here, marker, x="position")
            ends.append((float(here["value"].iloc[-1]), float(here["position"].iloc[-1]), workload))
        ends.sort()
        room = LABEL_ROOM * len(ends)
        for place, (value, position, workload) in zip(
            spread([min(value, 1 - room) for value, _, _ in ends], LABEL_ROOM), ends, strict=True
        ):
            axis.annotate(
                WORKLOADS.get(workload, workload).lower(),
                (position, value),
                xytext=(position + 0.12, place),
                textcoords="data",
                va="center",
                fontsize=9,
                color=style.colour,
                annotation_clip=False,
            )
        axis.set_title(style.label)
        axis.set_xticks(sorted(rows[rows["arm"] == arm]["position"].unique()))
        axis.set_xlabel("draft position")
        axis.set_ylim(0, 1)
        axis.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes[0].set_ylabel("drafts accepted up to here")
    badge(figure, f"{in_flight(rows)} · {failed_note(rows[rows['arm'].isin(shown)])}{source_of(rows)}")
    return figure
