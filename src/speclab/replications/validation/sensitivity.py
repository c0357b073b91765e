"""How much each choice in the model matters: the same predictions without it, or with another value held."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from speclab.errors import UserError
from speclab.findings.crossover import Crossing
from speclab.lab import Lab
from speclab.predict.parameters import H100_8B, MEANINGS, Parameters
from speclab.predict.step_time import ALL, ModelOptions
from speclab.replications.lab09 import replica as lab09
from speclab.replications.lab09.replica import DRAFT, EAGLE, FittedReplica, fit_replica
from speclab.replications.validation import published as others
from speclab.replications.validation import published_figures as source
from speclab.replications.validation.published_figures import TRAFFIC, Figures
from speclab.roofline.devices import device

INSIDE = "GSM8K"
H100 = device("h100-sxm")
AS_IS = "the model"
FITTED = "fitted too"
LEFT_OUT, HELD, ASSUMED = "left out", "held otherwise", "assumed otherwise"
GRAPH_SIZES = (1, 2, 4, *range(8, 513, 8))
"""Sizes to which vLLM's steps are padded by default, up to 512 tokens (``cudagraph_capture_sizes``)."""

OPTIONS = {
    "prompts share the steps": replace(ALL, prefill=False),
    "attention reads the context": replace(ALL, context=False),
    "drafting grows with the rows": replace(ALL, drafting_grows=False),
    "a draft's first pass runs over what was verified": replace(ALL, first_pass=False),
}
"""What the model has besides a roofline, and the options that leave it out."""

HIDDEN = "launches hide behind the target's pass"
PADDED = "steps are padded to captured sizes"
COVERED = "n-gram finds no draft in some steps"
SMOOTHINGS = (2.0, 2.5, 3.5, 4.5, 100.0)
ANSWERS = (256.0, 500.0)


@dataclass(frozen=True, slots=True)
class Variant:
    """A model that differs in one choice.

    Attributes
    ----------
    kind : str
        `AS_IS`, `LEFT_OUT`, `HELD`, `ASSUMED` or `FITTED`.
    name : str
    options : ModelOptions
    start : Parameters
    answer : float, optional
        Mean answer, tokens.
    fitted : str, optional
        A parameter that is fitted in addition.
    """

    kind: str
    name: str
    options: ModelOptions = ALL
    start: Parameters = H100_8B
    answer: float | None = None
    fitted: str | None = None


def variants() -> Iterator[Variant]:
    """Yield the model and its variants, each with one choice changed."""
    yield Variant(AS_IS, "")
    for name, options in OPTIONS.items():
        yield Variant(LEFT_OUT, name, options)
    yield Variant(ASSUMED, HIDDEN, replace(ALL, launches_hide=True))
    yield Variant(ASSUMED, PADDED, replace(ALL, captured=GRAPH_SIZES))
    yield Variant(FITTED, "smoothing", fitted="smoothing")
    for smoothing in SMOOTHINGS:
        words = f"smoothing {smoothing:g}" if smoothing < 10 else "no smoothing: the longer of the two times"
        yield Variant(HELD, words, start=H100_8B.replaced(smoothing=smoothing))
    for name in ("overhead_s", "token_s", "position_s"):
        for end in (MEANINGS[name].low, MEANINGS[name].high):
            yield Variant(HELD, f"{name} {end:.3g}", start=H100_8B.replaced(**{name: end}))
    for answer in ANSWERS:
        yield Variant(ASSUMED, f"answers of {answer:g} tokens", answer=answer)


def on_lab09(published: pd.DataFrame, lab: Lab) -> pd.DataFrame:
    """Return Lab 9's three targets by variant, each fitted again on the same three figures.

    Returns
    -------
    pd.DataFrame
        ``kind, variant, throughput`` (over published, less 1), ``eagle3, draft`` (crossovers, requests; infinite where
        there is none up to twice the lab's range), ``residual`` (largest of the fit).
    """
    rows = []
    for variant in variants():
        free = lab09.FREE if variant.fitted is None else (*lab09.FREE, variant.fitted)
        model = fit_replica(
            published, lab, options=variant.options, start=variant.start, answer=variant.answer, free=free
        )
        rows.append(
            {
                "kind": variant.kind,
                "variant": variant.name,
                "throughput": float(model.throughput(128, EAGLE)) / float(model.published["t01"]) - 1,
                "eagle3": _value(model, EAGLE),
                "draft": _value(model, DRAFT),
                "residual": max(map(abs, model.calibration.residuals.values())),
            }
        )
    return pd.DataFrame(rows)


def on_published(table: pd.DataFrame) -> pd.DataFrame:
    """Return the errors on arXiv:2601.11580 by variant, each dataset predicted from the other.

    Returns
    -------
    pd.DataFrame
        ``kind, variant``; for EAGLE-3 and n-gram ``<method>_mean`` and ``<method>_worst``, absolute; ``arithmetic``,
        the fitted rate over an H100's data sheet, and ``drafting``, the largest error of the share of EAGLE-3's step
        time that is drafting (Figure 4), both for the fit on GSM8K. NaN where the speed-ups no longer determine the
        parameters.
    """
    figures = source.figures(table)
    rows = [
        {"kind": variant.kind, "variant": variant.name, **_errors(figures, variant), **_inside(table, figures, variant)}
        for variant in variants()
        if variant.answer is None
    ]
    always = replace(figures, first_accepted=dict.fromkeys(figures.first_accepted, 1.0))
    rows.append({"kind": LEFT_OUT, "variant": COVERED, **_errors(always, Variant(LEFT_OUT, COVERED), others.FREE[:2])})
    return pd.DataFrame(rows)


def _free(variant: Variant) -> tuple[str, ...]:
    return others.FREE if variant.fitted is None else (*others.FREE, variant.fitted)


def _inside(table: pd.DataFrame, figures: Figures, variant: Variant) -> dict[str, float]:
    """Return what a fit on one dataset implies for the parts of a step."""
    try:
        parameters = others.calibrated(figures, INSIDE, variant.start, variant.options, _free(variant)).parameters
    except UserError:
        return {}
    tokens = figures.tokens_per_step["EAGLE-3", INSIDE]
    errors = []
    for share in source.shares(table):
        if (share.method, share.part) == ("EAGLE-3", "drafting"):
            step = others.parts(parameters, share.method, share.batch, INSIDE, tokens, 1.0, variant.options)
            errors.append(abs(float(step.drafting_s / step.total_s) - share.share))
    return {"arithmetic": parameters.flop_per_s / H100.peak_flop_per_s, "drafting": max(errors)}


def _errors(figures: Figures, variant: Variant, free: tuple[str, ...] = ()) -> dict[str, float]:
    datasets, free = sorted(TRAFFIC), free or _free(variant)
    errors_by_method: dict[str, list[float]] = {method: [] for method in others.FITTED_WITH}
    for seen, predicted_dataset in zip(datasets, reversed(datasets), strict=True):
        try:
            parameters = others.calibrated(figures, seen, variant.start, variant.options, free).parameters
        except UserError:
            return {}
        for method, errors in errors_by_method.items():
            for figure in figures.of(method, predicted_dataset):
                errors.append(others.predicted(figures, parameters, figure, variant.options) / figure.speed_up - 1)
    return {
        f"{method}_{name}": float(summary(np.abs(errors)))
        for method, errors in errors_by_method.items()
        for name, summary in (("mean", np.mean), ("worst", np.max))
    }


def _value(model: FittedReplica, arm: str) -> float:
    crossing: Crossing = model.crossing(arm)
    if crossing.value is not None:
        return crossing.value
    return float("inf") if crossing.low is not None else 0.0
