"""Ask the calibrated model by a calibration's name; the answer states the model's errors where it was tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pandas as pd

from speclab import lab as labs
from speclab.errors import UserError
from speclab.predict import answer as answers
from speclab.predict import survey as surveys
from speclab.predict.answer import Answered
from speclab.predict.calibration import Calibration
from speclab.predict.errors import CROSSOVER, SPEED_UP, Errors
from speclab.predict.query import Method, Query
from speclab.replications import calibrations
from speclab.replications.validation.predictions import LLAMA

BY_OTHERS: dict[Method, str] = {"eagle3": "EAGLE-3", "draft-model": "draft model", "ngram": "ngram"}
"""What others call a method in their tables of measurements."""


@dataclass(frozen=True)
class NamedQuery(Query):
    """A question, and the calibration to answer it with.

    Attributes
    ----------
    calibration : str
        A name in `calibrations.CALIBRATIONS`, or the path of a probe's record.
    """

    calibration: str = "lab09"


def answer(query: NamedQuery, with_errors: bool = True) -> Answered:
    """Return what the calibrated model says, as `speclab.predict.answer.answer` does.

    Raises
    ------
    UserError
        A name is unknown, a value is impossible, or the context does not fit into memory at a concurrency.
    """
    calibration = calibrations.named(query.calibration)
    errors = stated_errors(query.method, calibration) if with_errors else ()
    return answers.answer(query, calibration, errors, calibrations.discrepancy())


def predict_speed_up(acceptance: Sequence[float], **question: Any) -> Answered:
    """Return where speculation stops paying, by the calibrated model.

    Parameters
    ----------
    acceptance : sequence of float
        Marginal acceptance by draft position: share of drafts whose tokens up to here were all accepted.
    **question
        Further fields of `NamedQuery`: device, model, k (as many as there are positions), method, drafter,
        drafting_ms, context, concurrency, calibration.

    Returns
    -------
    Answered
        The speed-up at each number of requests in flight, the crossover with its interval, the model's stated errors.

    Raises
    ------
    UserError
        A name is unknown, or a value is impossible.
    """
    known = {field.name for field in fields(NamedQuery)} - {"acceptance"}
    if unknown := sorted(question.keys() - known):
        raise UserError(f"found {unknown[0]!r}", f"the fields of a question: {', '.join(sorted(known))}")
    return answer(NamedQuery(**{"k": len(acceptance), **question, "acceptance": tuple(acceptance)}))


def survey(
    base: NamedQuery,
    devices: Sequence[str],
    curves: Mapping[str, Sequence[float]],
    contexts: Sequence[float],
    ks: Sequence[int],
) -> pd.DataFrame:
    """Return what the model says over devices, curves, contexts and k (`speclab.predict.survey.survey`)."""
    calibration = calibrations.named(base.calibration)
    return surveys.survey(base, calibration, devices, curves, contexts, ks, calibrations.discrepancy())


def stated_errors(method: Method, calibration: Calibration) -> list[Errors]:
    """Return the stated errors for a method and a calibration's model; a probe's calibration has none yet."""
    if calibration.name not in calibrations.CALIBRATIONS:
        return []
    model = LLAMA if calibration.device is not None else calibration.target.name
    names = names_of(method)
    return [
        row
        for row in calibrations.validate()
        if row.method in names and row.figure in (SPEED_UP, CROSSOVER) and row.model == model
    ]


def names_of(method: Method) -> tuple[str, ...]:
    """Return a method's names in the errors: what others call it, and the measured lab's arms that draft with it."""
    return BY_OTHERS[method], *labs.load(calibrations.CPU_LAB).arms_by(method.replace("-", "_"))
