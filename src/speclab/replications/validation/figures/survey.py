"""The map in print: speed-up over concurrency, a panel for each device, a line for each context."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from speclab.figures.panels import WIDE, badge, concurrency_axis
from speclab.figures.style import BLACK, BLUE, GREEN, VERMILION, styled

CONTEXTS = ((BLUE, "-"), (VERMILION, "--"), (GREEN, "-."))


@styled
def speed_up_by_device(rows: pd.DataFrame, names: Mapping[str, str], source: str) -> Figure:
    """Draw the speed-up of one acceptance and k on several devices, with the band of its draws, as far as memory goes.

    Parameters
    ----------
    rows : DataFrame
        `speclab.predict.survey.survey` of one acceptance and k, at most three contexts.
    names : mapping of str to str
        Device to its name for the reader, in order.
    source : str
        Badge of the numbers.
    """
    figure = Figure(figsize=(WIDE[0], 5.6), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
    for index, (axis, (device, name)) in enumerate(zip(axes, names.items(), strict=True)):
        axis.set_title(name)
        axis.axhline(1.0, color=BLACK, linewidth=1.0)
        contexts = sorted(rows["context"].unique())
        for context, (colour, line) in zip(contexts, CONTEXTS, strict=False):
            here = rows[(rows["device"] == device) & (rows["context"] == context)].sort_values("concurrency")
            axis.fill_between(here["concurrency"], here["low"], here["high"], color=colour, alpha=0.18, linewidth=0)
            axis.plot(here["concurrency"], here["speed_up"], color=colour, linestyle=line, label=f"{context:,.0f}")
            crossover = here["crossover"].dropna().head(1)
            reached = crossover[crossover <= here["concurrency"].max()]
            axis.plot(reached, [1.0] * len(reached), "o", color="white", markeredgecolor=colour, markersize=8, zorder=4)
        concurrency_axis(axis, (1, 4, 16, 64, 256, 512))
        axis.set_ylabel("speed-up over the baseline" if index % 2 == 0 else "")
        if index < 2:
            axis.set_xlabel("")
    handles, labels = axes[0].get_legend_handles_labels()
    title = "context, tokens"
    figure.legend(handles, labels, title=title, ncols=3, fontsize=9, title_fontsize=9, loc="outside upper right")
    badge(figure, f"bands: nine of ten draws · rings: crossover · a line ends where memory is full · {source}")
    return figure
