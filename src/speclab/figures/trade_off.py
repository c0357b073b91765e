"""The trade-off of throughput: the server's tokens per second against each user's."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from speclab.figures.panels import badge, drawn, failed_note, failed_points, nothing_to_draw, pick, source_of
from speclab.figures.style import HALO, ArmStyle, Styles, styled
from speclab.findings.pairs import OK

SIZE = (6.3, 5.2)
"""Inches: narrow enough to be legible on a phone, where it is as wide as the screen."""

NEAR = 0.05
"""Points closer to each other than this, as a share of the figure's two sides together, share one number."""

LOW = 0.08
"""Points below this share of the figure have their number on the right: those of the axis are below them."""

_KEYS = ["arm", "concurrency"]


@styled
def trade_off(
    findings: pd.DataFrame,
    styles: Styles,
    called: Mapping[str, float],
    published: Mapping[str, tuple[float, float]] | None = None,
    workload: str = "chat",
) -> Figure:
    """Draw system throughput against per-user throughput, one curve an arm, a point for each concurrency.

    Up and to the right is better: more tokens from the server, and more for each user. Every point carries the 95%
    intervals of both, and its number of requests in flight where it is clear of its neighbours.

    Parameters
    ----------
    findings : pd.DataFrame
        A lab's findings.
    styles : Styles
        How its arms are drawn.
    called : mapping of str to float
        Points that are called out with their two values: the concurrency by arm.
    published : mapping of str to (float, float), optional
        What was published for a called-out point: tokens per second for each user and from the server, by arm.
    workload : str
        Which workload.
    """
    system, user = (pick(findings, f"{of}_throughput", workload=workload) for of in ("system", "user"))
    points = system.merge(
        user[[*_KEYS, "value", "low", "high", "status"]], on=_KEYS, suffixes=("_system", "_user")
    ).assign(status=lambda rows: rows["status_system"].where(rows["status_system"] != OK, rows["status_user"]))
    if points.empty:
        return nothing_to_draw()
    figure = Figure(figsize=SIZE, layout="constrained")
    axis = figure.subplots()
    arms = drawn(points, styles)
    for arm, style in arms.items():
        here = points[points["arm"] == arm].sort_values("concurrency")
        _intervals(axis, here, style.colour)
        axis.plot(here["value_user"], here["value_system"], label=style.label, markersize=6, **style.as_line())
        failed_points(axis, here, style.marker, x="value_user", y="value_system")
    axis.set_xlabel("tokens per second for each user")
    axis.set_ylabel("tokens per second from the server")
    axis.set_xlim(left=0)
    axis.set_ylim(bottom=0)
    axis.set_ylim(top=axis.get_ylim()[1] * (1.2 if called else 1.0))  # room for what is called out
    axis.yaxis.set_major_formatter("{x:,.0f}")
    named = [arm for arm in arms if arm in called] or list(arms)[:1]
    for arm in named:
        _number_points(axis, points[points["arm"] == arm].sort_values("concurrency"), styles[arm].colour)
    for arm, concurrency in called.items():
        for _, row in points[(points["arm"] == arm) & (points["concurrency"] == concurrency)].iterrows():
            _call_out(axis, row, styles[arm])
    for arm, (per_user, total) in (published or {}).items():
        style = styles[arm]
        axis.plot(per_user, total, marker=style.marker, markersize=8, markerfacecolor="white", linestyle="none",
                  markeredgecolor=style.colour, markeredgewidth=1.6, zorder=5)  # fmt: skip
        axis.annotate("published", (per_user, total), xytext=(8, -9), textcoords="offset points", fontsize=9,
                      color=style.colour, path_effects=HALO)  # fmt: skip
    axis.legend(fontsize=9.5, loc="upper right", handlelength=3.2)
    badge(figure, f"small numbers: requests in flight · bars: 95% intervals\n{failed_note(points)}{source_of(system)}")
    return figure


def _intervals(axis: Axes, points: pd.DataFrame, colour: str) -> None:
    known = points[points["low_system"].notna()]
    axis.vlines(known["value_user"], known["low_system"], known["high_system"], color=colour, linewidth=1.1, alpha=0.7)
    known = points[points["low_user"].notna()]
    axis.hlines(known["value_system"], known["low_user"], known["high_user"], color=colour, linewidth=1.1, alpha=0.7)


def _number_points(axis: Axes, points: pd.DataFrame, colour: str) -> None:
    """Write requests in flight beside each point that is not on top of the one before it."""
    last: tuple[float, float] | None = None
    (left, right), (bottom, top) = axis.get_xlim(), axis.get_ylim()
    for concurrency, x, y in points[["concurrency", "value_user", "value_system"]].to_numpy(float):
        place = (x - left) / (right - left), (y - bottom) / (top - bottom)
        if last is not None and abs(place[0] - last[0]) + abs(place[1] - last[1]) < NEAR:
            continue
        last = place
        aside, ha = ((7, 2), "left") if place[1] < LOW else ((-7, -10), "right")
        axis.annotate(
            f"{concurrency:g}", (x, y), xytext=aside, textcoords="offset points", ha=ha, fontsize=9,
            color=colour, path_effects=HALO,
        )  # fmt: skip


def _call_out(axis: Axes, row: pd.Series, style: ArmStyle) -> None:
    text = f"{style.label}\n{row['concurrency']:g} in flight:\n{row['value_system']:,.0f}, {row['value_user']:.0f} each"
    axis.plot(
        row["value_user"], row["value_system"], marker="o", markersize=13, markerfacecolor="none",
        markeredgecolor=style.colour, markeredgewidth=1.6, linestyle="none", zorder=5,
    )  # fmt: skip
    axis.annotate(
        text,
        (row["value_user"], row["value_system"]),
        xytext=(9, 9),
        textcoords="offset points",
        va="bottom",
        fontsize=9.5,
        color=style.colour,
        zorder=6,
        path_effects=HALO,
    )
