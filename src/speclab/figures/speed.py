"""How much faster speculation is, and where the gain ends."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from speclab.figures.panels import (
    WIDE,
    arm_legend,
    arm_lines,
    badge,
    colour_of,
    concurrency_axis,
    crowded,
    drawn,
    failed_note,
    in_flight,
    in_order,
    label_starts,
    nothing_to_draw,
    pick,
    source_of,
    workload_panels,
)
from speclab.figures.style import GREY, WORKLOADS, Styles, styled
from speclab.lab import BASELINE


@styled
def speed_up(findings: pd.DataFrame, styles: Styles) -> Figure:
    """Draw the speed-up over concurrency for each workload, with the points where it crosses 1.

    Lines are labelled in the last panel if all arms are in it and there is room, else in a legend.
    """
    rows = pick(findings, "speed_up")
    arms = drawn(rows, styles, BASELINE)
    figure, panels = workload_panels(rows, (WIDE[0], 3.9))
    for index, (workload, axis) in enumerate(panels.items()):
        here = rows[rows["workload"] == workload]
        axis.axhline(1.0, color="black", linewidth=1.0)
        starts = arm_lines(axis, here, arms)
        concurrency_axis(axis, here["concurrency"])
        axis.margins(y=0.12)
        crossings = pick(findings, "crossover", workload=workload, status="ok")
        lows = crossings["low"].fillna(here["concurrency"].min()).astype(float)
        highs = crossings["high"].fillna(here["concurrency"].max()).astype(float)
        known = crossings["low"].notna() | crossings["high"].notna()
        for arm, at, low, high, sure in zip(crossings["arm"], crossings["value"], lows, highs, known, strict=True):
            colour = styles[arm].colour
            if sure:
                axis.hlines(1.0, low, high, color=colour, linewidth=3.5, alpha=0.45, zorder=2)
            axis.plot(at, 1.0, marker="o", color="white", markeredgecolor=colour, markersize=8, zorder=4)
        if index == 0:
            axis.set_ylabel("speed-up over the baseline")
    if panels:
        is_room = not crowded((value for *_, value in starts), float(np.ptp(axis.get_ylim())))
        if len(starts) == len(arms) and is_room:
            label_starts(axis, starts)
        else:
            arm_legend(figure, arms)
    badge(figure, f"rings: where the speed-up crosses 1 · bars: 95% intervals · {failed_note(rows)}{source_of(rows)}")
    return figure


@styled
def arms_at_one(findings: pd.DataFrame, styles: Styles) -> Figure:
    """Draw each arm's speed-up at one request in flight, workload by workload."""
    rows = pick(findings, "speed_up", concurrency=findings["concurrency"].min())
    workloads = in_order(rows["workload"], WORKLOADS)
    arms = drawn(rows, styles, BASELINE)
    if not arms:
        return nothing_to_draw()
    figure = Figure(figsize=(WIDE[0] * 0.72, 0.8 + 0.5 * len(arms)), layout="constrained")
    axis = figure.subplots()
    heights = dict(zip(arms, range(len(arms) - 1, -1, -1), strict=True))
    for arm, style in arms.items():
        here = rows[rows["arm"] == arm]
        axis.plot([here["value"].min(), here["value"].max()], [heights[arm]] * 2, color=style.colour, linewidth=1.2)
        for _, row in here.iterrows():
            marker = "os^"[workloads.index(row["workload"]) % 3]
            axis.plot(row["value"], heights[arm], marker, color=colour_of(style, row), markersize=7)
    for offset, workload in enumerate(workloads):
        axis.plot([], [], "os^"[offset % 3], color=GREY, label=WORKLOADS.get(workload, workload))
    axis.axvline(1.0, color="black", linewidth=1.0)
    axis.set_yticks(list(heights.values()), [style.label for style in arms.values()])
    axis.grid(axis="y", visible=False)
    axis.set_xlabel(f"speed-up over the baseline, {in_flight(findings)}")
    axis.legend(loc="lower right", fontsize=9)
    badge(figure, f"{failed_note(rows)}{source_of(rows)}")
    return figure
