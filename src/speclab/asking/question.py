"""A question to the model from what a person asked: shapes, traffic, launches; what cannot be is said here."""

from __future__ import annotations

from speclab.asking.asked import DRAFTERS, SHORT_DEVICES, SHORT_MODELS, Asked
from speclab.calibrations import Calibration
from speclab.errors import UserError
from speclab.model.calibration.parameters import Parameters
from speclab.model.calibration.predict import Question
from speclab.model.calibration.price import Draft, launch_s
from speclab.model.calibration.traffic import Traffic, closed_loop
from speclab.model.devices import DEVICES, Device, device
from speclab.model.speculation import tokens_per_pass
from speclab.model.transformers import TRANSFORMERS, Transformer, transformer


def machine_of(asked: Asked, calibration: Calibration) -> Device | None:
    """Return the device that is asked about; None where the calibration belongs to a machine without a data sheet.

    Raises
    ------
    UserError
        The device is unknown, or named for a calibration of another machine.
    """
    if calibration.device is None:
        if asked.device not in ("cpu", Asked.device):
            raise UserError(
                f"found {asked.device!r}", f"the calibration {calibration.name} is of its own machine: leave it out",
                key="--device",
            )  # fmt: skip
        return None
    slug = SHORT_DEVICES.get(asked.device.lower(), asked.device.lower())
    if slug not in DEVICES:
        known = ", ".join([*SHORT_DEVICES, *(each for each in DEVICES if each not in SHORT_DEVICES.values())])
        raise UserError(f"unknown device {asked.device!r}", f"the known devices: {known}", key="--device")
    return device(slug)


def question(asked: Asked, calibration: Calibration, parameters: Parameters) -> tuple[Question, list[str]]:
    """Return the question in the model's terms, and what there is to say about it.

    Raises
    ------
    UserError
        A name is unknown, or a value cannot be.
    """
    target, notes = _target(asked, calibration)
    drafter = _drafter(asked, target)
    traffic = _traffic(asked)
    if asked.k < 1:
        raise UserError(f"found {asked.k}", "give at least one draft position", key="--k")
    launch, more = _launch(asked, calibration, parameters, target, drafter, traffic)
    draft = Draft(asked.k, drafter, asked.coverage, launch)
    return Question(target, draft, asked.acceptance, traffic, calibration.options), [*notes, *more]


def _target(asked: Asked, calibration: Calibration) -> tuple[Transformer, list[str]]:
    name = asked.model.lower()
    if calibration.device is None and asked.model == Asked.model:
        return calibration.target, []
    slug = SHORT_MODELS.get(name, name)
    if slug not in TRANSFORMERS:
        raise UserError(
            f"unknown model {asked.model!r}",
            f"the known ones: {', '.join([*SHORT_MODELS, *TRANSFORMERS])}",
            key="--model",
        )
    target = transformer(slug)
    if target.slug == calibration.target.slug:
        return target, []
    return target, [f"no measurement of {target.name}: fitted on {calibration.target.name}"]


def _drafter(asked: Asked, target: Transformer) -> Transformer | None:
    if asked.method == "ngram":
        return None
    slug = asked.drafter or DRAFTERS.get((asked.method, target.slug))
    if slug is None or slug not in TRANSFORMERS:
        raise UserError(
            f"no known {asked.method} drafter for {target.name}" if slug is None else f"unknown shape {slug!r}",
            f"name one of {', '.join(TRANSFORMERS)}", key="--drafter",
        )  # fmt: skip
    return transformer(slug)


def _traffic(asked: Asked) -> Traffic:
    for name in ("context", "prompt", "answer"):
        value = getattr(asked, name)
        if value is not None and not 1 <= value <= 1e7:
            raise UserError(f"found {value:g}", "give tokens, 1 to 10,000,000", key=f"--{name}")
    if (asked.prompt is None) != (asked.answer is None):
        missing = "--prompt" if asked.prompt is None else "--answer"
        raise UserError("missing", "give both mean lengths, or only --context", key=missing)
    if asked.prompt is not None and asked.answer is not None:
        return closed_loop(asked.prompt, asked.answer)
    return Traffic(asked.context)


def _launch(
    asked: Asked,
    calibration: Calibration,
    parameters: Parameters,
    target: Transformer,
    drafter: Transformer | None,
    traffic: Traffic,
) -> tuple[float | None, list[str]]:
    """Return the launch part of a draft position, s: from what was asked, or as the calibration has it."""
    if drafter is None:
        return None, []
    if asked.drafting_ms is None:
        if asked.method in calibration.launches:
            return calibration.launches[asked.method], []
        return None, [f"{calibration.name} has no launches of a {asked.method} drafter: give --drafting-ms"]
    if not 0 < asked.drafting_ms <= 1e4:
        raise UserError(f"found {asked.drafting_ms:g}", "give milliseconds above 0", key="--drafting-ms")
    tokens = tokens_per_pass(asked.acceptance, asked.coverage)
    launch = launch_s(parameters, target, drafter, asked.k, 1e-3 * asked.drafting_ms, traffic, tokens)
    if launch >= 0:
        return launch, []
    passes = asked.drafting_ms - 1e3 * launch
    return 0.0, [f"the model's own price of a draft position, {passes:.2f} ms, is above {asked.drafting_ms:g} ms"]
