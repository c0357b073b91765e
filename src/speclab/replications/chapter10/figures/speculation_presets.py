"""What each preset changes for a serving fleet: by workload, as a trade-off, and with its costs charged."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from speclab.figures.panels import WIDE, badge, in_order
from speclab.figures.style import (
    BASELINE_STYLE,
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    ArmStyle,
    styled,
)
from speclab.findings.pareto import on_front

PRESET_STYLES = {
    "baseline": BASELINE_STYLE,
    "mtp": ArmStyle("MTP head, k=3", ORANGE, "o", "-"),
    "draft-1b": ArmStyle("draft model, k=4", VERMILION, "^", "--"),
    "eagle3": ArmStyle("EAGLE-3, k=3", BLUE, "s", "-"),
    "ngram": ArmStyle("n-gram, k=8", GREEN, "D", "-."),
    "mtp-cut-off": ArmStyle("MTP head below a cut-off", PURPLE, "v", "--"),
}
"""How the presets are drawn: as the lab's arms where they are the same drafter."""

CHARGED = {"none": SKY, "launches": BLUE, "all-reduces": PURPLE, "both": BLACK}
"""Colours of what a draft pass is charged with."""


def preset_style(slug: str) -> ArmStyle:
    """Return how a preset is drawn."""
    return PRESET_STYLES.get(slug, ArmStyle(slug, GREY, "x", "-"))


@styled
def gains(sweep: pd.DataFrame, device: str, workloads: Mapping[str, str], source: str) -> Figure:
    """Draw each preset's change of goodput and of TPOT p99, workload by workload, on one device.

    Parameters
    ----------
    sweep : pd.DataFrame
        ``device, workload, lever, metric, change``: changes relative to the baseline.
    device : str
        Which device.
    workloads : mapping
        Name in the table to name in the figure, in order from the top.
    source : str
        Badge of the numbers.
    """
    here = sweep[(sweep["device"] == device) & (sweep["lever"] != "baseline")]
    presets = in_order(here["lever"], PRESET_STYLES)
    figure = Figure(figsize=(WIDE[0], 1.3 + 0.2 * len(presets) * len(workloads)), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    thick = 0.8 / len(presets)
    for axis, metric, title in zip(
        axes, ("goodput_per_gpu", "tpot_p99_s"), ("Goodput per GPU, at capacity", "TPOT p99, at the same load"),
        strict=True,
    ):  # fmt: skip
        for place, preset in enumerate(presets):
            rows = here[(here["lever"] == preset) & (here["metric"] == metric)].set_index("workload")["change"]
            heights = [row + (place - (len(presets) - 1) / 2) * thick for row in range(len(workloads))]
            style = preset_style(preset)
            changes = rows.reindex(list(workloads))
            axis.barh(heights, changes, height=thick * 0.9, color=style.colour, label=style.label)
        axis.axvline(0, color=BLACK, linewidth=1.0)
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:+.0%}"))
        axis.set_title(title)
        axis.set_xlabel("change from the baseline")
        axis.grid(axis="y", visible=False)
    axes[0].set_yticks(range(len(workloads)), list(workloads.values()))
    axes[0].invert_yaxis()
    axes[0].legend(fontsize=9, loc="center right")
    badge(figure, source)
    return figure


@styled
def frontier(
    points: pd.DataFrame, workloads: Mapping[str, str], devices: Mapping[str, str], source: str, needed: float
) -> Figure:
    """Draw goodput against TPOT p99 by configuration, a panel a workload, with the front of those that meet the SLOs.

    Parameters
    ----------
    points : pd.DataFrame
        ``device, workload, lever, goodput_per_gpu, tpot_p99_s, slo_1x``.
    workloads, devices : mapping
        Name in the table to name in the figure, in order.
    source : str
        Badge of the numbers.
    needed : float
        Attainment from which a configuration may be on the front; others are drawn hollow.
    """
    figure = Figure(figsize=(WIDE[0], 5.6), layout="constrained")
    axes = figure.subplots(2, 3).ravel()
    markers = dict(zip(devices, ("o", "s", "^", "D"), strict=False))
    known = points[points["device"].isin(list(devices))]
    for axis, (workload, name) in zip(axes, workloads.items(), strict=False):
        rows = known[known["workload"] == workload].dropna(subset=["goodput_per_gpu", "tpot_p99_s"])
        good = rows["slo_1x"] >= needed
        for (_, row), passes in zip(rows.iterrows(), good, strict=True):
            colour = preset_style(row["lever"]).colour
            axis.plot(
                1000 * row["tpot_p99_s"], row["goodput_per_gpu"], marker=markers[row["device"]], markersize=6,
                linestyle="none", color=colour, markerfacecolor=colour if passes else "none",
            )  # fmt: skip
        front = rows[good]
        front = front[on_front(front["tpot_p99_s"], front["goodput_per_gpu"], "lower", "higher")]
        _staircase(axis, front.sort_values("tpot_p99_s"))
        axis.set_title(name)
        axis.margins(0.12)
        axis.set_xlabel("TPOT p99, ms")
    for axis in (axes[0], axes[3]):
        axis.set_ylabel("goodput, req/s per GPU")
    _key(axes[len(workloads)], in_order(known["lever"], PRESET_STYLES), devices, markers)
    badge(figure, source)
    return figure


def _staircase(axis: Axes, front: pd.DataFrame) -> None:
    axis.step(1000 * front["tpot_p99_s"], front["goodput_per_gpu"], where="post", color=BLACK, linewidth=1.0, zorder=1)


def _key(axis: Axes, presets: list[str], devices: Mapping[str, str], markers: Mapping[str, str]) -> None:
    axis.axis("off")
    handles = [
        Line2D([], [], color=preset_style(preset).colour, linewidth=5, label=preset_style(preset).label)
        for preset in presets
    ]
    handles += [
        Line2D([], [], color=GREY, marker=markers[slug], linestyle="none", label=name) for slug, name in devices.items()
    ]
    handles.append(
        Line2D([], [], color=GREY, marker="o", markerfacecolor="none", linestyle="none", label="misses its SLOs")
    )
    axis.legend(handles=handles, loc="center", fontsize=9)


@styled
def charged(charges: pd.DataFrame, workloads: Mapping[str, str], source: str) -> Figure:
    """Draw the gain in goodput with draft passes free, and with their launches and all-reduces charged.

    Parameters
    ----------
    charges : pd.DataFrame
        ``workload, lever, charged, change``.
    workloads : mapping
        Name in the table to name in the figure, in order from the top.
    source : str
        Badge of the numbers.
    """
    presets = in_order(charges["lever"][charges["lever"] != "baseline"], PRESET_STYLES)
    kinds = in_order(charges["charged"], CHARGED)
    rows_shown = [slug for slug in workloads if slug in set(charges["workload"])]
    figure = Figure(figsize=(WIDE[0], 1.3 + 0.55 * len(rows_shown)), layout="constrained")
    axes = figure.subplots(1, len(presets), sharey=True, sharex=True, squeeze=False)[0]
    thick = 0.8 / len(kinds)
    for axis, preset in zip(axes, presets, strict=True):
        for place, kind in enumerate(kinds):
            rows = charges[(charges["lever"] == preset) & (charges["charged"] == kind)].set_index("workload")["change"]
            heights = [row + (place - (len(kinds) - 1) / 2) * thick for row in range(len(rows_shown))]
            changes = rows.reindex(rows_shown)
            axis.barh(heights, changes, height=thick * 0.9, color=CHARGED.get(kind, GREY), label=f"charged: {kind}")
            for height, change in zip(heights, changes, strict=True):
                axis.annotate(
                    f"{change:+.0%}", (max(change, 0), height), xytext=(3, 0), textcoords="offset points", va="center",
                    fontsize=8.5,
                )  # fmt: skip
        axis.set_title(preset_style(preset).label)
        axis.axvline(0, color=BLACK, linewidth=1.0)
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:+.0%}"))
        axis.set_xlabel("change of goodput per GPU")
        axis.xaxis.set_major_locator(MaxNLocator(4))
        axis.margins(x=0.15)
        axis.grid(axis="y", visible=False)
    axes[0].set_yticks(range(len(rows_shown)), [workloads[slug] for slug in rows_shown])
    axes[0].invert_yaxis()
    axes[0].legend(fontsize=8.5, loc="upper right")
    badge(figure, source)
    return figure
