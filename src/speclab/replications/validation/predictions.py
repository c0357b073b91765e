"""Every prediction that the project can compare with a measurement, source by source."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from speclab.findings.crossover import Crossing
from speclab.findings.pairs import NOT_REACHED, OK
from speclab.predict.errors import CROSSOVER, SHARE, SPEED_UP, THROUGHPUT, TIME, Predicted
from speclab.replications.lab09.replica import DRAFT, EAGLE, NGRAM, FittedReplica
from speclab.replications.validation import published as others
from speclab.replications.validation import published_figures as source
from speclab.replications.validation.measured import Calibrated
from speclab.replications.validation.published_figures import TRAFFIC, K, Method, figures_by_k

LLAMA, H100 = "Llama 3.1 8B", "H100"
METHODS: tuple[Method, ...] = ("EAGLE-3", "EAGLE", "ngram")
PARTS = {"drafting": "drafting_s", "verification": "verify_s", "sampling": "sampling_s", "other": "other_s"}


def on_published(table: pd.DataFrame, extras: pd.DataFrame) -> list[Predicted]:
    """Return the predictions of one dataset's speed-ups from the other's, and of time per token from k = 3."""
    figures = source.figures(table)
    datasets = sorted(TRAFFIC)
    predictions = []
    for seen in datasets:
        calibration = others.calibrated(figures, seen)
        for dataset in datasets:
            if dataset == seen:
                continue
            for method in METHODS:
                to_predict = figures.of(method, dataset)
                # without a published acceptance the speed-up at batch 1 is an input
                to_predict = to_predict if (method, dataset) in figures.tokens_per_step else to_predict[1:]
                predictions += [
                    Predicted(
                        "arXiv:2601.11580, Figure 1", LLAMA, H100, method, K, dataset, SPEED_UP,
                        f"batch {figure.batch:g}", figure.speed_up,
                        others.predicted(figures, calibration.parameters, figure), calibration.fitted_on,
                    )
                    for figure in to_predict
                ]  # fmt: skip
    return predictions + _by_k(table, extras)


def _by_k(table: pd.DataFrame, extras: pd.DataFrame) -> list[Predicted]:
    predictions = []
    for method in METHODS[:2]:
        figures = figures_by_k(table, extras, method)
        calibration, milliseconds = others.by_k(figures)
        predictions += [
            Predicted(
                "vllm-project/vllm#20780", LLAMA, H100, method, None, "MT-Bench", TIME, f"k = {k}", published,
                milliseconds[k], calibration.fitted_on,
            )
            for k, published in zip(figures.k, figures.time_per_output_token_ms, strict=True)
            if k != K
        ]  # fmt: skip
    return predictions


def shares(table: pd.DataFrame, dataset: str = "GSM8K") -> list[Predicted]:
    """Return the shares of step time by part that a fit on one dataset's speed-ups implies, beside Figure 4's.

    The source does not say which dataset its shares are of.
    """
    figures = source.figures(table)
    calibration = others.calibrated(figures, dataset)
    predictions = []
    for share in source.shares(table):
        speculates = share.method != "baseline"
        tokens = figures.tokens_per_step[share.method, dataset] if speculates else 1.0
        rate = others.draft_rate(figures, calibration.parameters, share.method, dataset) if speculates else 1.0
        step = others.parts(calibration.parameters, share.method, share.batch, dataset, tokens, rate)
        predictions.append(
            Predicted(
                "arXiv:2601.11580, Figure 4", LLAMA, H100, share.method, K if speculates else 0, share.part, SHARE,
                f"batch {share.batch:g}", share.share, float(getattr(step, PARTS[share.part]) / step.total_s),
                calibration.fitted_on,
            )
        )  # fmt: skip
    return predictions


def on_lab09(replica: FittedReplica) -> list[Predicted]:
    """Return the replica's predictions of Lab 9's published results."""
    at = replica.published

    def row(method: str, arm: str, figure: str, cell: str, measured: float, predicted: float) -> Predicted:
        k = 8 if arm == NGRAM else 3
        return Predicted(
            "Lab 9 (report)", LLAMA, H100, method, k, "chat", figure, cell, measured, predicted,
            replica.calibration.fitted_on,
        )  # fmt: skip

    throughput = float(replica.throughput(128, EAGLE))
    return [
        row("EAGLE-3", EAGLE, CROSSOVER, EAGLE, at["c02"], _value(replica.crossing(EAGLE))),
        row("draft model", DRAFT, CROSSOVER, DRAFT, at["c01"], _value(replica.crossing(DRAFT))),
        row("EAGLE-3", EAGLE, THROUGHPUT, "128 in flight", at["t01"], throughput),
        row("ngram", NGRAM, SPEED_UP, "1 in flight", 1 - at["n07"], float(replica.speed_up(1, NGRAM))),
    ]


def on_own(model: Calibrated, findings: pd.DataFrame, grid: Sequence[int], name: str, device: str) -> list[Predicted]:
    """Return the predictions of a lab's speed-ups and crossovers that passed its checks.

    Speed-ups of cells that the fit saw are left out, as are crossovers that the lab does not resolve.
    """
    predictions = []
    for arm, (k, _) in model.setting.drafters.items():
        for workload in model.setting.traffic:
            if (arm, workload) not in model.returns:
                continue
            rows = findings[(findings["arm"] == arm) & (findings["workload"] == workload)]
            place = ("lab " + name, model.setting.target.name, device, arm, k, workload)
            ratios = rows[(rows["finding"] == "speed_up") & (rows["status"] == OK)]
            predictions += [
                Predicted(
                    *place, SPEED_UP, f"{concurrency:g} in flight", measured,
                    float(model.speed_up(arm, workload, concurrency)), model.calibration.fitted_on,
                )
                for concurrency, measured in zip(
                    ratios["concurrency"].astype(int), ratios["value"].astype(float), strict=True
                )
                if not model.setting.sees(arm, workload, concurrency)
            ]  # fmt: skip
            crossing = rows[(rows["finding"] == "crossover") & (rows["status"] == OK)]
            predicted = _value(model.crossing(arm, workload, grid))
            predictions += [
                Predicted(*place, CROSSOVER, workload, measured, predicted, model.calibration.fitted_on)
                for measured in crossing["value"].astype(float)
            ]
    return predictions


def agrees(predicted: Crossing, status: str, low: float, high: float) -> bool | None:
    """Return whether a predicted crossing lies where a lab's does or may; None where the lab's is unknown.

    Parameters
    ----------
    predicted : Crossing
    status : str
        The lab's.
    low, high : float
        The lab's bounds on the concurrency, NaN where open.
    """
    if status not in (OK, NOT_REACHED):
        return None
    value = predicted.value
    if value is None:
        always_above = predicted.low is not None
        return bool(np.isnan(high)) if always_above else bool(np.isnan(low))
    return bool((np.isnan(low) or value >= low) and (np.isnan(high) or value <= high))


def _value(crossing: Crossing) -> float:
    """Return a predicted crossing; where the curve does not cross, the end nearest to where it would."""
    if crossing.value is not None:
        return crossing.value
    bound = crossing.high if crossing.low is None else crossing.low
    assert bound is not None
    return bound
