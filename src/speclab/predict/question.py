"""A query in the terms of the model: shapes, traffic, launches; impossible values are refused here."""

from __future__ import annotations

from speclab.errors import UserError
from speclab.predict.calibration import Calibration
from speclab.predict.parameters import Parameters
from speclab.predict.prediction import Question
from speclab.predict.query import CONTEXT, DRAFTERS, SHORT_DEVICES, SHORT_MODELS, Query
from speclab.predict.step_time import Draft, launch_s
from speclab.predict.traffic import Traffic, closed_loop
from speclab.roofline.devices import DEVICES, Device, device
from speclab.roofline.speculation import tokens_per_pass
from speclab.roofline.transformers import TRANSFORMERS, Transformer, transformer


def machine_of(query: Query, calibration: Calibration) -> Device | None:
    """Return the device that is asked about; None where the calibration belongs to a machine without a data sheet.

    Raises
    ------
    UserError
        The device is unknown, or named for a calibration of another machine.
    """
    if calibration.device is None:
        if query.device is not None:
            raise UserError(
                f"found {query.device!r}", f"the calibration {calibration.name} is of its own machine: leave it out",
                key="--device",
            )  # fmt: skip
        return None
    if query.device is None:
        return calibration.device
    slug = SHORT_DEVICES.get(query.device.lower(), query.device.lower())
    if slug not in DEVICES:
        known = ", ".join([*SHORT_DEVICES, *(name for name in DEVICES if name not in SHORT_DEVICES.values())])
        raise UserError(f"unknown device {query.device!r}", f"the known devices: {known}", key="--device")
    return device(slug)


def question(query: Query, calibration: Calibration, parameters: Parameters) -> tuple[Question, list[str]]:
    """Return the question in the model's terms, with notes on it.

    Raises
    ------
    UserError
        A name is unknown, or a value cannot be.
    """
    target, notes = _target(query, calibration)
    drafter = _drafter(query, target)
    traffic = _traffic(query)
    if query.k < 1:
        raise UserError(f"found {query.k}", "give at least one draft position", key="--k")
    launch, more = _launch(query, calibration, parameters, target, drafter, traffic)
    draft = Draft(query.k, drafter, query.draft_rate, launch)
    return Question(target, draft, query.acceptance, traffic, calibration.options), [*notes, *more]


def _target(query: Query, calibration: Calibration) -> tuple[Transformer, list[str]]:
    if query.model is None:
        return calibration.target, []
    name = query.model.lower()
    slug = SHORT_MODELS.get(name, name)
    if slug not in TRANSFORMERS:
        raise UserError(
            f"unknown model {query.model!r}",
            f"the known ones: {', '.join([*SHORT_MODELS, *TRANSFORMERS])}",
            key="--model",
        )
    target = transformer(slug)
    if target.slug == calibration.target.slug:
        return target, []
    return target, [f"no measurement of {target.name}: fitted on {calibration.target.name}"]


def _drafter(query: Query, target: Transformer) -> Transformer | None:
    if query.method == "ngram":
        for key, value in (("--drafter", query.drafter), ("--drafting-ms", query.drafting_ms)):
            if value is not None:
                found = value if isinstance(value, str) else f"{value:g}"
                raise UserError(
                    f"found {found}, and n-gram has no network that drafts",
                    "leave it out: the look-up's time is the calibration's", key=key,
                )  # fmt: skip
        return None
    slug = query.drafter or DRAFTERS.get((query.method, target.slug))
    if slug is None or slug not in TRANSFORMERS:
        raise UserError(
            f"no known {query.method} drafter for {target.name}" if slug is None else f"unknown shape {slug!r}",
            f"name one of {', '.join(TRANSFORMERS)}", key="--drafter",
        )  # fmt: skip
    return transformer(slug)


def _traffic(query: Query) -> Traffic:
    for name in ("context", "prompt", "answer"):
        value = getattr(query, name)
        if value is not None and not 1 <= value <= 1e7:
            raise UserError(f"found {value:g}", "give tokens, 1 to 10,000,000", key=f"--{name}")
    if (query.prompt is None) != (query.answer is None):
        missing = "--prompt" if query.prompt is None else "--answer"
        raise UserError("missing", "give both mean lengths, or only --context", key=missing)
    if query.prompt is None or query.answer is None:
        return Traffic(CONTEXT if query.context is None else query.context)
    if query.context is not None:
        raise UserError(f"found {query.context:g}, and a context follows from --prompt and --answer",
                        "give both mean lengths, or only --context", key="--context")  # fmt: skip
    return closed_loop(query.prompt, query.answer)


def _launch(
    query: Query,
    calibration: Calibration,
    parameters: Parameters,
    target: Transformer,
    drafter: Transformer | None,
    traffic: Traffic,
) -> tuple[float | None, list[str]]:
    """Return the launch part of a draft position, s: from the query, or as calibrated."""
    if drafter is None:
        return None, []
    if query.drafting_ms is None:
        if query.method in calibration.launches:
            return calibration.launches[query.method], []
        return None, [f"{calibration.name} has no launches of a {query.method} drafter: give --drafting-ms"]
    if not 0 < query.drafting_ms <= 1e4:
        raise UserError(f"found {query.drafting_ms:g}", "give milliseconds above 0", key="--drafting-ms")
    tokens = tokens_per_pass(query.acceptance, query.draft_rate)
    launch = launch_s(parameters, target, drafter, query.k, 1e-3 * query.drafting_ms, traffic, tokens)
    if launch >= 0:
        return launch, []
    passes = query.drafting_ms - 1e3 * launch
    return 0.0, [
        f"the model's own passes for a draft position take {passes:.2f} ms, more than {query.drafting_ms:g} ms"
    ]
