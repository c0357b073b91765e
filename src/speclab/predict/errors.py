"""How wrong the model has been: predictions beside measurements, summed up by source and method."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

GROUPED_BY = ("source", "method", "k", "dataset", "figure", "fitted_on")

SPEED_UP, CROSSOVER, THROUGHPUT, TIME, SHARE = "speed-up", "crossover", "throughput", "time per token", "share of step"


@dataclass(frozen=True, slots=True)
class Predicted:
    """One prediction beside its measurement.

    Attributes
    ----------
    source, model, device, method : str
        Who measured what.
    k : int or None
        Draft positions; None where they vary.
    dataset : str
    figure : str
        What was measured.
    cell : str
        Where.
    measured, predicted : float
    fitted_on : str
        What the model had seen.
    """

    source: str
    model: str
    device: str
    method: str
    k: int | None
    dataset: str
    figure: str
    cell: str
    measured: float
    predicted: float
    fitted_on: str

    @property
    def error(self) -> float:
        """Predicted over measured, less 1; of a share of a step, predicted less measured."""
        if self.figure == SHARE:
            return self.predicted - self.measured
        return self.predicted / self.measured - 1


@dataclass(frozen=True, slots=True)
class Errors:
    """The errors of one method on one dataset; the entries of ``speclab validate --json``.

    Attributes
    ----------
    n : int
        Predictions.
    mean_abs_error : float
        Mean of the errors' absolute values, ratio (of a share of a step: points of the share).
    worst_error : float
        The error furthest from 0, with its sign.
    worst_cell : str
        Where it is.
    """

    source: str
    model: str
    device: str
    method: str
    k: int | None
    dataset: str
    figure: str
    n: int
    mean_abs_error: float
    worst_error: float
    worst_cell: str
    fitted_on: str

    def row(self) -> dict[str, str | int | float | None]:
        """Return the entry, numbers kept to six digits."""
        digits = {name: float(f"{getattr(self, name):.6g}") for name in ("mean_abs_error", "worst_error")}
        return asdict(self) | digits


def summed(predictions: Iterable[Predicted]) -> list[Errors]:
    """Return the errors by source, method, k, dataset, figure and fit, in the order in which they first appear."""
    groups: dict[tuple[object, ...], list[Predicted]] = {}
    for prediction in predictions:
        key = tuple(getattr(prediction, name) for name in GROUPED_BY)
        groups.setdefault(key, []).append(prediction)
    return [_summed(group) for group in groups.values()]


def discrepancy(predictions: Iterable[Predicted]) -> float:
    """Return how far predicted speed-ups are off from one source to the next: a standard deviation of their logarithm.

    Each source has one vote, its own mean square: one that measured a hundred cells says no more of the next source
    than one that measured three. 0 where there is no speed-up.
    """
    squares: dict[str, list[float]] = {}
    for each in predictions:
        if each.figure == SPEED_UP:
            squares.setdefault(each.source, []).append(math.log(each.predicted / each.measured) ** 2)
    return math.sqrt(float(np.mean([np.mean(of_one) for of_one in squares.values()]))) if squares else 0.0


def _summed(group: Sequence[Predicted]) -> Errors:
    errors = np.array([prediction.error for prediction in group])
    worst = int(np.argmax(np.abs(errors)))
    of = group[0]
    return Errors(
        of.source, of.model, of.device, of.method, of.k, of.dataset, of.figure, len(group),
        float(np.abs(errors).mean()), float(errors[worst]), group[worst].cell, of.fitted_on,
    )  # fmt: skip
