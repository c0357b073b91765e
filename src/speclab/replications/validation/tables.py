"""The calibrated model's results as the book's tables: rows of words, numbers formatted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from speclab.book.table import number
from speclab.predict.errors import SHARE, Errors, Predicted
from speclab.predict.fit import Fit
from speclab.predict.parameters import MEANINGS
from speclab.replications.validation.measured import Calibrated
from speclab.replications.validation.predictions import agrees
from speclab.replications.validation.published_figures import NAMES, K

NOTHING, DIGITS = "–", 4
SCALES = {
    "s": ((1e-4, 1e3, "ms"), (0.0, 1e6, "µs")),
    "byte/s": ((1e11, 1e-12, "TB/s"), (0.0, 1e-9, "GB/s")),
    "FLOP/s": ((0.0, 1e-12, "TFLOP/s"),),
}
"""How a value in a unit is written: from this size, times this factor, in this unit."""


def replica(table: pd.DataFrame) -> pd.DataFrame:
    """Return every published figure of Lab 9 beside the replica's (`speclab.replications.lab09.replica_table`)."""
    places = table[["arm", "workload", "concurrency"]].astype(object)
    places["concurrency"] = [
        f"{concurrency:g} in flight" if pd.notna(concurrency) else None for concurrency in table["concurrency"]
    ]
    shown = pd.DataFrame(
        {
            "figure": table["quantity"],
            "where": [", ".join(part for part in row if isinstance(part, str)) for row in places.to_numpy()],
            "unit": table["unit"],
            "published": [number(value, DIGITS) for value in table["published"]],
            "model": [number(value, DIGITS) for value in table["model"]],
            "nine of ten draws": [_range(low, high) for low, high in zip(table["low"], table["high"], strict=True)],
            "difference": table["difference"].map("{:+.1%}".format),
            "label": table["role"],
        }
    )
    return shown.replace({"nan": NOTHING, "+nan%": NOTHING, "": NOTHING})


def errors(rows: Sequence[Errors]) -> pd.DataFrame:
    """Return the model's errors, a row for each source, method, dataset and figure."""
    return pd.DataFrame(
        {
            "source": error.source,
            "method": error.method,
            "k": NOTHING if error.k is None else str(error.k),
            "dataset": error.dataset,
            "figure": error.figure,
            "n": error.n,
            "mean error": _percent(error.mean_abs_error, error.figure, sign=False),
            "worst": _percent(error.worst_error, error.figure),
            "where": error.worst_cell,
            "fitted on": error.fitted_on,
        }
        for error in rows
    )


def beside_the_bar(errors: Sequence[Errors], published: pd.DataFrame) -> pd.DataFrame:
    """Return ours and the published simulator's errors by method, k = 3, over all cells of both datasets."""
    bars = published[published["id"].str.startswith("bar-") & (published["k"] == K)]
    rows = []
    for name, group in bars.groupby("method", sort=False):
        method: str = NAMES[str(name)]
        mean, worst = group["value"]
        ours = [error for error in errors if error.method == method and error.source.startswith("arXiv:2601.11580")]
        cells = sum(error.n for error in ours)
        rows.append(
            {
                "method": method,
                "ours, mean": sum(error.mean_abs_error * error.n for error in ours) / cells,
                "ours, worst": max((error.worst_error for error in ours), key=lambda error: abs(error)),
                "cells": cells,
                "published simulator, mean": float(mean),
                "published simulator, worst": float(worst),
            }
        )
    return pd.DataFrame(rows)


def predictions(rows: Sequence[Predicted]) -> pd.DataFrame:
    """Return every prediction beside its measurement."""
    return pd.DataFrame(
        {
            "source": prediction.source,
            "method": prediction.method,
            "dataset": prediction.dataset,
            "figure": prediction.figure,
            "where": prediction.cell,
            "measured": f"{prediction.measured:.4g}",
            "predicted": f"{prediction.predicted:.4g}",
            "error": _percent(prediction.error, prediction.figure),
        }
        for prediction in rows
    )


def shares(predictions: Sequence[Predicted], batches: Sequence[int] = (1, 64, 128, 512)) -> pd.DataFrame:
    """Return the shares of step time, published and the model's, a row for each method and part."""
    rows = []
    for method in dict.fromkeys(prediction.method for prediction in predictions):
        for part in dict.fromkeys(prediction.dataset for prediction in predictions):
            by_cell = {
                prediction.cell: prediction
                for prediction in predictions
                if (prediction.method, prediction.dataset) == (method, part)
            }
            cells = [f"batch {batch}" for batch in batches]
            texts = {cell: f"{by_cell[cell].measured:.0%} / {by_cell[cell].predicted:.0%}" for cell in cells}
            rows.append({"method": method, "part": part, **texts})
    return pd.DataFrame(rows)


def crossings(model: Calibrated, findings: pd.DataFrame, grid: Sequence[int]) -> pd.DataFrame:
    """Return the crossovers of a lab of our own, measured and predicted, and whether the two agree."""
    rows = []
    for row in findings[findings["finding"] == "crossover"].to_dict("records"):
        arm, workload = str(row["arm"]), str(row["workload"])
        predicted = model.crossing(arm, workload, grid)
        agreed = agrees(predicted, str(row["status"]), float(row["low"]), float(row["high"]))
        rows.append(
            {
                "arm": arm,
                "workload": workload,
                "measured": _crossing(row["value"], row["low"], str(row["status"])),
                "predicted": _crossing(predicted.value, predicted.low, predicted.status),
                "agree": NOTHING if agreed is None else "yes" if agreed else "no",
            }
        )
    return pd.DataFrame(rows)


def parameters(fits: dict[str, Fit]) -> pd.DataFrame:
    """Return each parameter with its meaning, plausible range, and value in each fit.

    A fitted value has its relative standard deviation, a held one is marked.
    """
    rows = []
    for name, meaning in MEANINGS.items():
        values = {title: _value(fit, name) for title, fit in fits.items()}
        spans = f"{_written(meaning.low, meaning.unit)} to {_written(meaning.high, meaning.unit)}"
        rows.append(
            {"parameter": name, "what it is": meaning.says, "plausible": spans, "from": meaning.source, **values}
        )
    return pd.DataFrame(rows)


def variants(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of `speclab.replications.validation.sensitivity` as text."""
    shown = table.assign(variant=table["variant"].replace("", NOTHING))
    for name in ("eagle3", "draft"):
        if name in shown:
            shown[name] = [_beyond(value) for value in table[name]]
    for name in shown.columns.difference(["kind", "variant", "eagle3", "draft"]):
        form = "{:+.1%}" if name == "throughput" else "{:.1%}"
        texts = [NOTHING if np.isnan(value) else form.format(value) for value in table[name]]
        shown[name] = [text.replace("%", " points") for text in texts] if name == "drafting" else texts
    return shown.rename(
        columns={
            "throughput": "EAGLE-3's throughput at 128",
            "eagle3": "EAGLE-3 crosses",
            "draft": "draft model crosses",
            "residual": "largest residual of the fit",
            "EAGLE-3_mean": "EAGLE-3, mean error",
            "EAGLE-3_worst": "EAGLE-3, worst",
            "ngram_mean": "n-gram, mean error",
            "ngram_worst": "n-gram, worst",
            "arithmetic": "fitted rate over the data sheet's",
            "drafting": "largest error of drafting's share",
        }
    )


def _value(fit: Fit, name: str) -> str:
    value = float(getattr(fit.parameters, name))
    written = _written(value, MEANINGS[name].unit)
    if name in fit.free:
        return f"{written} ± {fit.relative_error(name):.0%}"
    if name in fit.held:
        return f"{written} (held)"
    return NOTHING


def _written(value: float, unit: str) -> str:
    for least, factor, of in SCALES.get(unit, ()):
        if value >= least:
            return f"{value * factor:.3g} {of}"
    return f"{value:.3g}"


def _percent(error: float, figure: str, sign: bool = True) -> str:
    text = f"{error:+.1%}" if sign else f"{error:.1%}"
    return text.replace("%", " points") if figure == SHARE else text


def _range(low: float, high: float) -> str:
    if np.isnan(low):
        return NOTHING
    least = number(low, DIGITS)
    return f"{least} and more" if np.isnan(high) else f"{least} to {number(high, DIGITS)}"


def _crossing(value: float | None, low: float | None, status: str) -> str:
    if status == "ok" and value is not None:
        return f"{value:.0f}"
    if status != "not reached":
        return status
    return "not below 1" if low is not None and low == low else "not above 1"


def _beyond(value: float) -> str:
    if np.isinf(value):
        return "not up to 512"
    return f"{value:.0f}" if value else "never above 1"
