"""What several figures share: a panel for each workload, a line for each arm, labels on the lines."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from speclab.figures.style import GREY, HALO, WORKLOADS, ArmStyle, Styles
from speclab.findings.pairs import OK

WIDE = (8.8, 3.4)
"""Size of a figure that fills the text's width, in inches."""


def pick(findings: pd.DataFrame, finding: str, **where: Any) -> pd.DataFrame:
    """Return the rows of one finding that have a value, and match `where` column by column."""
    rows = findings[(findings["finding"] == finding) & findings["value"].notna()]
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows


def row_of(findings: pd.DataFrame, finding: str, **where: Any) -> pd.Series:
    """Return the one row of a finding that has a value and matches `where`.

    Raises
    ------
    LookupError
        There is not exactly one.
    """
    rows = pick(findings, finding, **where)
    if len(rows) != 1:
        raise LookupError(f"{len(rows)} values of {finding} at {where}, expected 1")
    return rows.iloc[0]


def colour_of(style: ArmStyle, *rows: pd.Series) -> str:
    """Return an arm's colour; grey where one of the rows that are drawn failed a check."""
    return style.colour if all(row["status"] == OK for row in rows) else GREY


def failed_points(axis: Axes, rows: pd.DataFrame, marker: str, x: str = "concurrency", y: str = "value") -> None:
    """Draw the points of rows that failed a check again, in grey."""
    bad = rows[rows["status"] != OK]
    axis.plot(bad[x], bad[y], linestyle="none", marker=marker, color=GREY, zorder=3)


def in_order(names: Iterable[str], order: Iterable[str]) -> list[str]:
    """Return the names that occur: those in `order` first, in that order, then the others."""
    present = list(dict.fromkeys(names))
    known = [name for name in order if name in present]
    return known + [name for name in present if name not in known]


def drawn(rows: pd.DataFrame, styles: Styles, *without: str) -> dict[str, ArmStyle]:
    """Return the styles of the arms that occur in some rows, except those in `without`."""
    present = set(rows["arm"]) - set(without)
    return {arm: style for arm, style in styles.items() if arm in present}


def in_flight(rows: pd.DataFrame) -> str:
    """Return the lowest number of requests in flight in words."""
    lowest = rows["concurrency"].min()
    return "one request in flight" if lowest == 1 else f"{lowest:g} requests in flight"


def nothing_to_draw() -> Figure:
    """Return a figure that states that there is nothing to show."""
    figure = Figure(figsize=(WIDE[0], 1.0), layout="constrained")
    figure.text(0.5, 0.5, "no data for this figure", ha="center", color=GREY)
    return figure


def workload_panels(findings: pd.DataFrame, size: tuple[float, float] = WIDE) -> tuple[Figure, dict[str, Axes]]:
    """Return a figure with one panel for each workload, side by side on one vertical scale."""
    workloads = in_order(findings["workload"].dropna(), WORKLOADS)
    if not workloads:
        return nothing_to_draw(), {}
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(1, len(workloads), sharey=True, squeeze=False)[0]
    for axis, workload in zip(axes, workloads, strict=True):
        axis.set_title(WORKLOADS.get(workload, workload))
    return figure, dict(zip(workloads, axes, strict=True))


def concurrency_axis(axis: Axes, concurrencies: Iterable[float]) -> None:
    """Make the horizontal axis logarithmic in requests in flight, with the measured values as its ticks."""
    ticks = sorted(set(concurrencies))
    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_locator(FixedLocator(ticks))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.tick_params(axis="x", labelsize=9)
    axis.set_xlabel("requests in flight")


def arm_lines(axis: Axes, rows: pd.DataFrame, styles: Styles) -> list[tuple[ArmStyle, float, float]]:
    """Draw one line for each arm over concurrency, with bounds where they are known; return each line's first point."""
    starts = []
    for arm, style in styles.items():
        line = rows[rows["arm"] == arm].sort_values("concurrency")
        if line.empty:
            continue
        axis.plot(line["concurrency"], line["value"], **style.as_line())
        failed_points(axis, line, style.marker)
        known = line[line["low"].notna()]
        if len(known):
            axis.vlines(known["concurrency"], known["low"], known["high"], color=style.colour, linewidth=1.2, alpha=0.7)
        starts.append((style, float(line["concurrency"].iloc[0]), float(line["value"].iloc[0])))
    return starts


def arm_legend(figure: Figure, styles: Styles) -> None:
    """Name the arms above the panels, four to a line, where lines are too close to be labelled."""
    lines = [Line2D([], [], label=style.label, **style.as_line()) for style in styles.values()]
    figure.legend(handles=lines, loc="outside upper left", ncols=min(len(styles), 4), fontsize=9.5)


def crowded(values: Iterable[float], height: float, rows: int = 16) -> bool:
    """Return whether lines that start at these values are too close to be labelled at their starts.

    Parameters
    ----------
    values : iterable of float
        Where each line starts.
    height : float
        What the vertical axis spans, in the same unit.
    rows : int
        How many labels fit above each other.
    """
    ordered = sorted(values)
    return any(above - below < height / rows for below, above in itertools.pairwise(ordered))


def label_starts(axis: Axes, starts: Sequence[tuple[ArmStyle, float, float]], gap_points: float = 13.0) -> None:
    """Label each line above its first point; a label is pushed up where it would overlap another."""
    figure = axis.get_figure()
    if figure is None or not starts:
        return
    height_points = axis.get_position().height * figure.get_figheight() * 72  # type: ignore[union-attr]
    bottom, top = axis.get_ylim()
    ordered = sorted(starts, key=lambda start: start[2])
    desired = [(value - bottom) / (top - bottom) * height_points for _, _, value in ordered]
    placed = spread(desired, gap_points)
    for (style, x, value), at, offset in zip(ordered, placed, desired, strict=True):
        axis.annotate(
            style.label,
            (x, value),
            xytext=(0, at - offset + 5),
            textcoords="offset points",
            va="bottom",
            color=style.colour,
            fontsize=9.5,
            annotation_clip=False,
            path_effects=HALO,
        )


def spread(desired: Sequence[float], gap: float) -> list[float]:
    """Return rising positions for labels: as desired, but each at least `gap` above the one before it."""
    placed: list[float] = []
    for offset in desired:
        placed.append(max(offset, placed[-1] + gap) if placed else offset)
    return placed


def badge(figure: Figure, source: str) -> None:
    """Write the source of the numbers under a figure, as every figure must."""
    figure.supxlabel(source, fontsize=8.5, color=GREY, ha="right", x=0.995)


def failed_note(rows: pd.DataFrame) -> str:
    """Return a note on grey points, to precede the source of a figure; empty where no row failed a check."""
    return "grey: failed a check · " if (rows["status"] != OK).any() else ""


def source_of(findings: pd.DataFrame) -> str:
    """Return the badge of a table's numbers."""
    return " · ".join(sorted(findings["source"].dropna().unique()))
