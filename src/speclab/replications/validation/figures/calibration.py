"""The calibrated model beside what was measured, and what a million tokens cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from speclab import lab as labs
from speclab.figures.panels import WIDE, badge, concurrency_axis
from speclab.figures.style import BLACK, BLUE, GREEN, GREY, PURPLE, styled, styles_of
from speclab.lab import BASELINE
from speclab.predict.errors import SPEED_UP, Predicted
from speclab.predict.prediction import INTERVAL
from speclab.replications.lab09.replica import DRAFT, EAGLE, FittedReplica

METHODS = {"EAGLE-3": (BLUE, "s"), "EAGLE": (PURPLE, "^"), "ngram": (GREEN, "D")}
CURVE = np.geomspace(1, 512, 73)


@styled
def replica_speed_up(
    model: FittedReplica, published: Mapping[str, Mapping[float, float]], source: str, draws: int = 60
) -> Figure:
    """Draw the replica's speed-up on chat with its band, and the published points; crossovers are rings.

    Parameters
    ----------
    model : FittedReplica
    published : dict of str to dict of float to float
        Speed-ups by arm and concurrency.
    source : str
        Badge of the numbers.
    draws : int
        Parameter sets behind the band.
    """
    drawn = model.calibration.draws(draws)
    figure = Figure(figsize=(WIDE[0] * 0.8, 4.2), layout="constrained")
    axis = figure.subplots()
    axis.axhline(1.0, color=BLACK, linewidth=1.0)
    styles = styles_of(labs.load("lab09"))
    for arm, crossing in ((EAGLE, "c02"), (DRAFT, "c01")):
        style = styles[arm]
        low, high = np.quantile(
            [model.speed_up(CURVE, arm, using=parameters) for parameters in drawn], INTERVAL, axis=0
        )
        axis.fill_between(CURVE, low, high, color=style.colour, alpha=0.18, linewidth=0)
        axis.plot(CURVE, model.speed_up(CURVE, arm), color=style.colour, linestyle=style.line, label=style.label)
        for concurrency, value in published.get(arm, {}).items():
            axis.plot(
                concurrency, value, linestyle="none", marker=style.marker, color=style.colour, markersize=7, zorder=4
            )
        axis.plot(
            model.published[crossing], 1.0, "o", color="white", markeredgecolor=style.colour, markersize=9, zorder=5
        )
    concurrency_axis(axis, (1, 4, 16, 64, 128, 256, 512))
    axis.set_ylabel("speed-up over the baseline, chat")
    axis.legend(fontsize=9)
    badge(figure, f"lines and bands: the model · points and rings: published · {source}")
    return figure


@styled
def predicted_beside_measured(predictions: Sequence[Predicted], source: str) -> Figure:
    """Draw predicted against measured speed-ups of other people's measurements, a panel for each dataset predicted."""
    rows = [
        prediction
        for prediction in predictions
        if prediction.figure == SPEED_UP and prediction.source.startswith("arXiv")
    ]
    datasets = sorted({prediction.dataset for prediction in rows})
    figure = Figure(figsize=(WIDE[0] * 0.85, 4.0), layout="constrained")
    axes = figure.subplots(1, len(datasets), sharey=True, squeeze=False)[0]
    for axis, dataset in zip(axes, datasets, strict=True):
        here = [prediction for prediction in rows if prediction.dataset == dataset]
        ends = [
            0.95 * min(prediction.measured for prediction in here),
            1.05 * max(prediction.measured for prediction in here),
        ]
        axis.plot(ends, ends, color=BLACK, linewidth=1.0)
        axis.fill_between(ends, [0.95 * end for end in ends], [1.05 * end for end in ends], color=GREY, alpha=0.15)
        for method, (colour, marker) in METHODS.items():
            of_method = [prediction for prediction in here if prediction.method == method]
            axis.plot(
                [prediction.measured for prediction in of_method], [prediction.predicted for prediction in of_method],
                linestyle="none", marker=marker, color=colour, label="n-gram" if method == "ngram" else method,
            )  # fmt: skip
        axis.set_title(f"{dataset}, predicted from the other")
        axis.set_xlabel("measured speed-up")
    axes[0].set_ylabel("predicted speed-up")
    axes[0].legend(fontsize=9)
    badge(figure, f"line: equal · band: 5% either side · {source}")
    return figure


@styled
def cost_of_tokens(costs: Sequence[Mapping[str, float | None]], crossover: float | None, source: str) -> Figure:
    """Draw dollars and joules per million tokens over concurrency, with speculation and without."""
    concurrencies = [float(cost["concurrency"] or 0) for cost in costs]
    figure = Figure(figsize=(WIDE[0], 3.6), layout="constrained")
    axes = figure.subplots(1, 2)
    styles = styles_of(labs.load("lab09"))
    for axis, unit, name in zip(axes, ("$", "J"), ("usd_per_mtok", "j_per_mtok"), strict=True):
        for prefix, arm in (("baseline_", BASELINE), ("", EAGLE)):
            style = styles[arm]
            values = [float(cost[prefix + name] or np.nan) for cost in costs]
            axis.plot(concurrencies, values, label=style.label, **style.as_line())
        if crossover is not None:
            axis.axvline(crossover, color=GREY, linewidth=1.0, linestyle=":")
        axis.set_yscale("log")
        concurrency_axis(axis, (1, 4, 16, 64, 256))
        axis.set_ylabel(f"{unit} per million tokens")
    axes[0].legend(fontsize=9)
    badge(figure, f"dotted: where the speed-up is 1 · {source}")
    return figure
