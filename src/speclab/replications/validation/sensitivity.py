"""What each choice in the model is worth: the same predictions with it left out, or with another value held."""

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
"""What the model has beside a roofline, and the options without it."""

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
        A parameter that is fitted besides.
    """

    kind: str
    name: str
    options: ModelOptions = ALL
    start: Parameters = H100_8B
    answer: float | None = None
    fitted: str | None = None


def variants() -> Iterator[Variant]:
    """Yield the model and all that differ from it in one choice."""
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
    """Return Lab 9's three targets by variant, each fitted anew on the same three figures.

    Returns
    -------
    pd.DataFrame
        ``kind, variant, throughput`` (over published, less 1), ``eagle3, draft`` (crossovers, requests; infinite where
        there is none up to twice the lab's range), ``residual`` (largest of the fit).
    """
    rows = []
    for each in variants():
        free = lab09.FREE if each.fitted is None else (*lab09.FREE, each.fitted)
        model = fit_replica(published, lab, options=each.options, start=each.start, answer=each.answer, free=free)
        rows.append(
            {
                "kind": each.kind,
                "variant": each.name,
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
        time that is drafting (Figure 4), both for the fit on GSM8K. NaN where the speed-ups do not carry the parameters
        any more.
    """
    figures = source.figures(table)
    rows = [
        {"kind": each.kind, "variant": each.name, **_errors(figures, each), **_inside(table, figures, each)}
        for each in variants()
        if each.answer is None
    ]
    always = replace(figures, first_accepted=dict.fromkeys(figures.first_accepted, 1.0))
    rows.append({"kind": LEFT_OUT, "variant": COVERED, **_errors(always, Variant(LEFT_OUT, COVERED), others.FREE[:2])})
    return pd.DataFrame(rows)


def _free(variant: Variant) -> tuple[str, ...]:
    return others.FREE if variant.fitted is None else (*others.FREE, variant.fitted)


def _inside(table: pd.DataFrame, figures: Figures, variant: Variant) -> dict[str, float]:
    """Return what a fit on one dataset says of the parts of a step."""
    try:
        parameters = others.calibrated(figures, INSIDE, variant.start, variant.options, _free(variant)).parameters
    except UserError:
        return {}
    tokens = figures.tokens_per_step["EAGLE-3", INSIDE]
    off = []
    for each in source.shares(table):
        if (each.method, each.part) == ("EAGLE-3", "drafting"):
            step = others.parts(parameters, each.method, each.batch, INSIDE, tokens, 1.0, variant.options)
            off.append(abs(float(step.drafting_s / step.total_s) - each.share))
    return {"arithmetic": parameters.flop_per_s / H100.peak_flop_per_s, "drafting": max(off)}


def _errors(figures: Figures, variant: Variant, free: tuple[str, ...] = ()) -> dict[str, float]:
    datasets, free = sorted(TRAFFIC), free or _free(variant)
    found: dict[str, list[float]] = {method: [] for method in others.FITTED_WITH}
    for seen, asked in zip(datasets, reversed(datasets), strict=True):
        try:
            parameters = others.calibrated(figures, seen, variant.start, variant.options, free).parameters
        except UserError:
            return {}
        for method, errors in found.items():
            for each in figures.of(method, asked):
                errors.append(others.predicted(figures, parameters, each, variant.options) / each.speed_up - 1)
    return {
        f"{method}_{what}": float(of(np.abs(errors)))
        for method, errors in found.items()
        for what, of in (("mean", np.mean), ("worst", np.max))
    }


def _value(model: FittedReplica, arm: str) -> float:
    crossing: Crossing = model.crossing(arm)
    if crossing.value is not None:
        return crossing.value
    return float("inf") if crossing.low is not None else 0.0
