"""What a step costs with speculation, and what it must gain in return."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from speclab.figures.panels import (
    WIDE,
    badge,
    colour_of,
    concurrency_axis,
    failed_note,
    failed_points,
    in_order,
    nothing_to_draw,
    pick,
    row_of,
    source_of,
    workload_panels,
)
from speclab.figures.style import BLACK, HALO, WORKLOADS, Styles, styled
from speclab.lab import BASELINE


@styled
def step_anatomy(findings: pd.DataFrame, styles: Styles, workload: str = "chat") -> Figure:
    """Draw, at the fewest requests in flight, what a step costs beside what a token costs, arm by arm."""
    lowest = findings["concurrency"].min()
    here = findings[(findings["workload"] == workload) & (findings["concurrency"] == lowest)]
    known = [set(pick(here, name)["arm"]) for name in ("step_time", "ms_per_accepted_token")]
    arms = [arm for arm in styles if arm in set.intersection(*known)][::-1]
    if BASELINE not in arms:
        return nothing_to_draw()
    base_ms = row_of(here, "step_time", arm=BASELINE)["value"]
    figure = Figure(figsize=(WIDE[0], 0.9 + 0.5 * len(arms)), layout="constrained")
    step_axis, token_axis = figure.subplots(1, 2, sharey=True)
    for height, arm in enumerate(arms):
        step, token = row_of(here, "step_time", arm=arm), row_of(here, "ms_per_accepted_token", arm=arm)
        step_ms, token_ms, colour = step["value"], token["value"], colour_of(styles[arm], step, token)
        step_axis.barh(height, base_ms, color="#D9D9D9", height=0.6)
        step_axis.barh(height, step_ms - base_ms, left=base_ms, color=colour, height=0.6)
        token_axis.barh(height, token_ms, color=colour, height=0.6)
        for axis, value in ((step_axis, step_ms), (token_axis, token_ms)):
            axis.annotate(
                f"{value:.2f}", (value, height), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9,
                path_effects=HALO,
            )  # fmt: skip
    step_axis.set_yticks(range(len(arms)), [styles[arm].label for arm in arms])
    step_axis.set_title("One step (grey: the baseline's)")
    step_axis.set_xlabel("ms per step")
    token_axis.axvline(base_ms, color=BLACK, linewidth=1.0)
    token_axis.set_title("One token to the user")
    token_axis.set_xlabel("ms per accepted token")
    for axis in (step_axis, token_axis):
        axis.grid(axis="y", visible=False)
        axis.margins(x=0.12)
    note = failed_note(pick(here, "step_time"))
    badge(figure, f"{WORKLOADS.get(workload, workload).lower()}, {lowest:g} in flight · {note}{source_of(findings)}")
    return figure


@styled
def break_even(findings: pd.DataFrame, styles: Styles, arms: tuple[str, ...]) -> Figure:
    """Draw the tokens per step that an arm needs and those that it gets, over concurrency."""
    rows = findings[findings["arm"].isin(arms)]
    needed, got = pick(rows, "break_even_length"), pick(rows, "tokens_per_step")
    if needed.empty:
        return nothing_to_draw()
    figure, panels = workload_panels(needed)
    for index, (workload, axis) in enumerate(panels.items()):
        for arm in in_order(needed["arm"], arms):
            style = styles[arm]
            need = needed[(needed["workload"] == workload) & (needed["arm"] == arm)].sort_values("concurrency")
            gets = got[(got["workload"] == workload) & (got["arm"] == arm)].sort_values("concurrency")
            axis.plot(need["concurrency"], need["value"], **style.as_line())
            failed_points(axis, need, style.marker)
            axis.plot(gets["concurrency"], gets["value"], color=style.colour, linewidth=1.2, alpha=0.6)
            if index == 0 and len(gets):
                axis.annotate(
                    f"{style.label}: gets",
                    (gets["concurrency"].iloc[0], gets["value"].iloc[0]),
                    xytext=(0, 4),
                    textcoords="offset points",
                    fontsize=8.5,
                    color=style.colour,
                )
        concurrency_axis(axis, needed["concurrency"])
        axis.set_ylim(bottom=0.9)
        if index == 0:
            axis.set_ylabel("tokens per step")
    last_axis = list(panels.values())[-1]
    for arm in in_order(needed["arm"], arms):
        line = needed[(needed["arm"] == arm) & (needed["workload"] == list(panels)[-1])].sort_values("concurrency")
        for at, value in line[["concurrency", "value"]].tail(1).to_numpy(float):
            last_axis.annotate(
                "needs", (at, value), xytext=(7, 0), textcoords="offset points",
                va="center", fontsize=8.5, color=styles[arm].colour, annotation_clip=False,
            )  # fmt: skip
    badge(figure, f"the arm pays while it gets more than it needs · {failed_note(needed)}{source_of(needed)}")
    return figure


@styled
def ngram_cost_and_return(findings: pd.DataFrame, styles: Styles, arm: str) -> Figure:
    """Draw what n-gram adds to a step beside what it brings back, workload by workload."""
    here = findings[(findings["concurrency"] == findings["concurrency"].min())]
    required = ("drafting_time", "tokens_per_step", "break_even_length")
    known = [set(pick(here, name, arm=arm)["workload"]) for name in required]
    workloads = in_order(set.intersection(*known), WORKLOADS)
    if not workloads:
        return nothing_to_draw()
    style = styles[arm]
    figure = Figure(figsize=(WIDE[0], 0.9 + 0.5 * len(workloads)), layout="constrained")
    cost_axis, return_axis = figure.subplots(1, 2, sharey=True)
    for height, workload in enumerate(workloads[::-1]):
        extra = row_of(here, "drafting_time", arm=arm, workload=workload)
        returned = row_of(here, "tokens_per_step", arm=arm, workload=workload)
        extra_ms, gets = extra["value"], returned["value"]
        needs = row_of(here, "break_even_length", arm=arm, workload=workload)["value"]
        cost_axis.barh(height, extra_ms, color=colour_of(style, extra), height=0.6)
        return_axis.barh(height, gets, color=colour_of(style, returned), height=0.6)
        return_axis.plot([needs, needs], [height - 0.4, height + 0.4], color=BLACK, linewidth=1.6)
        for axis, value in ((cost_axis, extra_ms), (return_axis, max(gets, needs))):
            text = f"{extra_ms:.2f}" if axis is cost_axis else f"{gets:.2f}"
            axis.annotate(text, (value, height), xytext=(5, 0), textcoords="offset points", va="center", fontsize=9)
    cost_axis.set_yticks(range(len(workloads)), [WORKLOADS.get(name, name) for name in workloads[::-1]])
    cost_axis.set_title("What it adds to a step")
    cost_axis.set_xlabel("ms per step beyond the baseline's")
    return_axis.set_title("What comes back (line: break-even)")
    return_axis.set_xlabel("tokens per step")
    for axis in (cost_axis, return_axis):
        axis.grid(axis="y", visible=False)
        axis.margins(x=0.14)
        axis.set_xlim(left=0)
    note = failed_note(pick(here, "drafting_time", arm=arm))
    badge(figure, f"{style.label}, {here['concurrency'].min():g} in flight · {note}{source_of(here)}")
    return figure
