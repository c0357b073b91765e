"""The model's answer to a question: the prediction, its cost, the model's errors, and what to beware of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from speclab.predict.calibration import Calibration
from speclab.predict.cost import token_cost
from speclab.predict.errors import Errors
from speclab.predict.fit import Fit
from speclab.predict.memory import concurrencies, most_in_flight
from speclab.predict.parameters import Parameters
from speclab.predict.prediction import Prediction, Question, Widening, predict
from speclab.predict.query import Query
from speclab.predict.question import machine_of
from speclab.predict.question import question as question_of
from speclab.roofline.devices import Device
from speclab.roofline.transformers import Transformer


@dataclass(frozen=True, slots=True)
class Answered:
    """The model's answer to one question.

    Attributes
    ----------
    prediction : Prediction
    costs : list of dict
        Dollars and joules per million tokens, with speculation and without, at the answer's concurrencies and around
        the crossover; empty for a machine without a data sheet.
    errors : list of Errors
        What the same model got wrong where it could be held against a measurement.
    calibration : str
        Name, and what it was fitted on.
    most_in_flight : int or None
        Requests of the mean context that fit into memory; None where the memory is not known.
    """

    prediction: Prediction
    costs: list[dict[str, float | None]]
    errors: list[Errors]
    calibration: str
    most_in_flight: int | None

    def as_json(self) -> dict[str, Any]:
        """Return one flat object: lists over concurrency, the crossover with its interval, warnings, errors."""
        prediction = asdict(self.prediction)
        crossover = prediction.pop("crossover")
        curves = {"speed_up_low": prediction.pop("low"), "speed_up_high": prediction.pop("high")}
        return {
            **prediction,
            **curves,
            "crossover": crossover["value"],
            "low": crossover["low"],
            "high": crossover["high"],
            "status": crossover["status"],
            "cost": self.costs,
            "stated_error": [error.row() for error in self.errors],
            "calibration": self.calibration,
            "most_in_flight": self.most_in_flight,
        }


def answer(query: Query, calibration: Calibration, errors: Sequence[Errors] = (), discrepancy: float = 0.0) -> Answered:
    """Return what the calibrated model says.

    Parameters
    ----------
    query : Query
        What is asked.
    calibration : Calibration
        The parameters that answer it.
    errors : sequence of Errors, optional
        What the same model got wrong elsewhere, to be stated with the answer.
    discrepancy : float
        How far it is off from one source to the next (`speclab.predict.errors.discrepancy`); widens the intervals
        outside of what was fitted.

    Raises
    ------
    UserError
        A name is unknown, a value cannot be, or the context does not fit into memory at a concurrency.
    """
    machine = machine_of(query, calibration)
    fit, notes = _carried(calibration, machine)
    question, more = question_of(query, calibration, fit.parameters)
    most = most_in_flight(machine, question)
    concurrency = concurrencies(query, machine, question, most)
    carried = _doublings(calibration, machine, question.target)
    prediction = predict(fit, question, concurrency, widening=Widening(discrepancy, carried))
    value = prediction.crossover.value
    if most is not None and (value is None or value > most) and prediction.crossover.status != "always below":
        notes = [
            *notes,
            f"{most} requests of {question.traffic.context:.0f} tokens fill the memory: no crossover below",
        ]
    notes = [*notes, *more]
    prediction = replace(prediction, warnings=[*notes, *prediction.warnings])
    costs = [] if machine is None else _costs(machine, question, fit.parameters, concurrency, value)
    return Answered(prediction, costs, list(errors), f"{calibration.name}: {fit.fitted_on}", most)


def _carried(calibration: Calibration, machine: Device | None) -> tuple[Fit, list[str]]:
    """Return the fit for a machine, with a note where it was made on another one."""
    home = calibration.device
    if machine is None or home is None or machine.slug == home.slug:
        return calibration.fit, []
    note = f"no measurement of {machine.name}: {home.name}'s shares of the data sheet's rates are carried over"
    moved = calibration.fit.parameters.on(machine, home)
    return replace(calibration.fit, parameters=moved), [note]


def _doublings(calibration: Calibration, machine: Device | None, target: Transformer) -> float:
    """Return how far a device's rates and a model's size are from those that were fitted on, in doublings."""
    home, moved = calibration.device, 0.0
    if machine is not None and home is not None:
        rates = (machine.peak_byte_per_s / home.peak_byte_per_s, machine.peak_flop_per_s / home.peak_flop_per_s)
        moved = max(abs(math.log2(rate)) for rate in rates)
    return moved + abs(math.log2(target.matmul_parameters / calibration.target.matmul_parameters))


def _costs(
    machine: Device, question: Question, parameters: Parameters, concurrency: Sequence[int], crossover: float | None
) -> list[dict[str, float | None]]:
    """Return the cost at each concurrency, and at half, once and twice the crossover."""
    around = [] if crossover is None else [crossover / 2, crossover, 2 * crossover]
    at = sorted({*map(float, concurrency), *(rows for rows in around if rows >= 1)})
    k = question.draft.k
    with_drafts = token_cost(machine, question, at, question.step_s(parameters, at, k), k)
    without = token_cost(machine, question, at, question.step_s(parameters, at, 0), 0)
    return [
        {
            "concurrency": rows,
            "usd_per_mtok": with_drafts.usd[index] if with_drafts.usd else None,
            "baseline_usd_per_mtok": without.usd[index] if without.usd else None,
            "j_per_mtok": with_drafts.joules[index],
            "baseline_j_per_mtok": without.joules[index],
        }
        for index, rows in enumerate(at)
    ]
