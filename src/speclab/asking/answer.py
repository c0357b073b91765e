"""The model's answer to a question: the prediction, its cost, the model's errors, and what to beware of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from speclab import calibrations
from speclab.asking.asked import METHODS, Asked
from speclab.asking.memory import concurrencies, most_in_flight
from speclab.asking.question import machine_of
from speclab.asking.question import question as question_of
from speclab.calibrations import Calibration
from speclab.findings.validation.errors import CROSSOVER, SPEED_UP, Errors
from speclab.findings.validation.predictions import LLAMA
from speclab.model.calibration.bill import bill
from speclab.model.calibration.fit import Fit
from speclab.model.calibration.parameters import Parameters
from speclab.model.calibration.predict import Prediction, Question, predict
from speclab.model.devices import Device


@dataclass(frozen=True, slots=True)
class Answered:
    """The model's answer to one question.

    Attributes
    ----------
    prediction : Prediction
    bills : list of dict
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
    bills: list[dict[str, float | None]]
    errors: list[Errors]
    calibration: str
    most_in_flight: int | None

    def as_json(self) -> dict[str, Any]:
        """Return one flat object: lists over concurrency, the crossover with its interval, warnings, errors."""
        found = asdict(self.prediction)
        crossover = found.pop("crossover")
        curves = {"speed_up_low": found.pop("low"), "speed_up_high": found.pop("high")}
        return {
            **found,
            **curves,
            "crossover": crossover["value"],
            "low": crossover["low"],
            "high": crossover["high"],
            "status": crossover["status"],
            "cost": self.bills,
            "stated_error": [each.row() for each in self.errors],
            "calibration": self.calibration,
            "most_in_flight": self.most_in_flight,
        }


def answer(asked: Asked, with_errors: bool = True) -> Answered:
    """Return what the calibrated model says.

    Raises
    ------
    UserError
        A name is unknown, a value cannot be, or the context does not fit into memory at a concurrency.
    """
    calibration = calibrations.named(asked.calibration)
    machine = machine_of(asked, calibration)
    fit, notes = _carried(calibration, machine)
    question, more = question_of(asked, calibration, fit.parameters)
    most = most_in_flight(machine, question)
    concurrency = concurrencies(asked, machine, question, most)
    found = predict(fit, question, concurrency)
    value = found.crossover.value
    if most is not None and (value is None or value > most) and found.crossover.status != "always below":
        notes = [
            *notes,
            f"{most} requests of {question.traffic.context:.0f} tokens fill the memory: no crossover below",
        ]
    notes = [*notes, *more]
    prediction = replace(found, warnings=[*notes, *found.warnings])
    bills = [] if machine is None else _bills(machine, question, fit.parameters, concurrency, value)
    errors = _errors(asked, calibration) if with_errors else []
    return Answered(prediction, bills, errors, f"{calibration.name}: {fit.fitted_on}", most)


def _carried(calibration: Calibration, machine: Device | None) -> tuple[Fit, list[str]]:
    """Return the fit for a machine, and what there is to say where it is not the one that it was made on."""
    home = calibration.device
    if machine is None or home is None or machine.slug == home.slug:
        return calibration.fit, []
    note = f"no measurement of {machine.name}: {home.name}'s shares of the data sheet's rates are carried over"
    moved = calibration.fit.parameters.on(machine, home)
    return replace(calibration.fit, parameters=moved), [note]


def _bills(
    machine: Device, question: Question, parameters: Parameters, concurrency: Sequence[int], crossover: float | None
) -> list[dict[str, float | None]]:
    """Return the cost at each concurrency, and at half, once and twice the crossover."""
    around = [] if crossover is None else [crossover / 2, crossover, 2 * crossover]
    at = sorted({*map(float, concurrency), *(each for each in around if each >= 1)})
    k = question.draft.k
    with_drafts = bill(machine, question, at, question.step_s(parameters, at, k), k)
    without = bill(machine, question, at, question.step_s(parameters, at, 0), 0)
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


def _errors(asked: Asked, calibration: Calibration) -> list[Errors]:
    """Return the model's errors for this method on the model that the calibration is of; a probe's has none yet."""
    if calibration.name not in calibrations.CALIBRATIONS:
        return []
    of = LLAMA if calibration.device is not None else calibration.target.name
    return [
        each
        for each in calibrations.validate()
        if each.method in METHODS[asked.method] and each.figure in (SPEED_UP, CROSSOVER) and each.model == of
    ]
