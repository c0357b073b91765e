"""How often intervals held the truth."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, PercentFormatter

from speclab.figures.panels import WIDE, badge
from speclab.figures.style import GREY, styled

SHOWN = {"speed_up": ("o", "#0072B2", "speed-up"), "crossover": ("s", "#D55E00", "crossover")}
"""Findings that are drawn: marker, colour (Okabe-Ito), name."""


@styled
def coverage(table: pd.DataFrame) -> Figure:
    """Draw the share of 95% intervals that held the truth, a row for each scenario, with its own 95% interval.

    Parameters
    ----------
    table : pd.DataFrame
        As `speclab.interval_coverage.experiment.run` returns it.
    """
    scenarios = table[["scenario", "blocks"]].drop_duplicates().reset_index(drop=True)
    figure = Figure(figsize=(WIDE[0], 1.2 + 0.42 * len(scenarios)), layout="constrained")
    axis = figure.subplots()
    axis.axvspan(0.90, 0.98, color=GREY, alpha=0.15, lw=0)
    axis.axvline(0.95, color="black", linewidth=1.0)
    heights = {tuple(row): -index for index, row in enumerate(scenarios.itertuples(index=False))}
    for offset, (finding, (marker, colour, name)) in zip((0.12, -0.12), SHOWN.items(), strict=True):
        rows = table[table["finding"] == finding]
        at = [heights[key] + offset for key in zip(rows["scenario"], rows["blocks"], strict=True)]
        axis.hlines(at, rows["share_low"], rows["share_high"], color=colour, linewidth=1.6)
        axis.plot(rows["share"], at, linestyle="none", marker=marker, color=colour, label=name)
    axis.set_yticks(list(heights.values()), [f"{scenario}, {blocks} blocks" for scenario, blocks in heights])
    axis.grid(axis="y", visible=False)
    axis.xaxis.set_major_locator(FixedLocator([0.6, 0.7, 0.8, 0.9, 0.95, 1.0]))
    axis.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axis.set_xlabel("95% intervals that held the truth")
    axis.legend(loc="lower left", fontsize=9)
    badge(figure, "band: 90% to 98% · lines: 95% Wilson intervals · simulated")
    return figure
