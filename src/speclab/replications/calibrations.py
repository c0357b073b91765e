"""The project's calibrations, made from its own files each time: no fitted number is stored."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from speclab import lab as labs
from speclab import prompts as prompt_sets
from speclab import results
from speclab.engines import vllm_flags
from speclab.errors import UserError
from speclab.lab import BASELINE
from speclab.predict import errors
from speclab.predict.calibration import Calibration
from speclab.predict.errors import Errors, Predicted
from speclab.predict.fit import Fit
from speclab.predict.parameters import CPU_135M
from speclab.predict.step_time import ModelOptions
from speclab.predict.traffic import Traffic, closed_loop
from speclab.probe import record as probed
from speclab.probe.calibration import for_server
from speclab.replications import published
from speclab.replications.lab09 import replica as lab09
from speclab.replications.lab09.replica import FittedReplica
from speclab.replications.validation import measured, predictions
from speclab.replications.validation import published as others
from speclab.replications.validation import published_figures as source
from speclab.replications.validation.measured import Calibrated, Setting
from speclab.roofline.devices import device
from speclab.roofline.transformers import Transformer, transformer

OTHERS, BESIDES = "others_measured", "model_errors"
"""Tables of published figures: other people's measurements, and what else the model needs."""

CPU_LAB = "cpu-smollm2"
_CPU_DRAFTERS: dict[str, Transformer | None] = {
    "eagle3": transformer("eagle3-head-135m"),
    "draft_model": transformer("smollm2-135m-4l"),
    "ngram": None,
}
"""The networks in ``data/drafters``, by method."""


def named(name: str) -> Calibration:
    """Return a calibration by its name, or that of a probe's record (a path that ends in ``.json``).

    Raises
    ------
    UserError
        There is none of that name, or what it is made from is missing.
    """
    if name.endswith(".json"):
        return _probed(Path(name))
    if name not in CALIBRATIONS:
        known = f"there are {', '.join(CALIBRATIONS)}; or give the record of a probe, a .json file"
        raise UserError(f"unknown calibration {name!r}", known, key="--calibration")
    return CALIBRATIONS[name]()


@cache
def lab09_replica() -> FittedReplica:
    """Return the model fitted on three figures of Lab 9's baseline."""
    return lab09.fit_replica(published.read("lab09"), labs.load("lab09"))


@cache
def cpu() -> Calibrated:
    """Return the model fitted on two concurrencies of the CPU lab's baseline and EAGLE-3 head.

    Raises
    ------
    UserError
        The lab's tables are missing or damaged.
    """
    lab_results = results.of(CPU_LAB)
    speculation = {name: lab_results.lab.arm(name).speculation for name in lab_results.lab.arms}
    drafters = {
        name: (arm_speculation.num_speculative_tokens, _CPU_DRAFTERS[arm_speculation.method])
        for name, arm_speculation in speculation.items()
        if arm_speculation is not None
    }
    setting = Setting(
        target=transformer("smollm2-135m"),
        drafters=drafters,
        traffic=_cpu_traffic(lab_results),
        start=CPU_135M,
        fitted_arm="eagle3-k3",
        fitted_workload="chat",
        fitted_at=(lab_results.lab.concurrencies[0], lab_results.lab.concurrencies[-1]),
        options=ModelOptions(eager=bool(vllm_flags.normalised(lab_results.lab.server).get("enforce-eager"))),
    )
    return measured.calibrated(lab_results.tables.cells, setting)


@cache
def predicted() -> tuple[Predicted, ...]:
    """Return every prediction that can be compared with a measurement, except the shares of a step (`shares`)."""
    table = published.read(OTHERS)
    own = results.of(CPU_LAB)
    _, _, machine = own.source.rstrip(")").rpartition(", ")
    return (
        *predictions.on_published(table, published.read(BESIDES)),
        *predictions.on_lab09(lab09_replica()),
        *predictions.on_own(cpu(), own.findings, own.lab.concurrencies, CPU_LAB, machine),
    )


@cache
def shares() -> tuple[Predicted, ...]:
    """Return the shares of step time that a fit on speed-ups implies, beside the published ones."""
    return tuple(predictions.shares(published.read(OTHERS)))


def validate() -> list[Errors]:
    """Return the model's errors, a row for each source, method, dataset and figure."""
    return errors.summed(predicted())


@cache
def discrepancy() -> float:
    """Return how far the model is off from one source to the next: a standard deviation of a speed-up's logarithm."""
    return errors.discrepancy(predicted())


def _probed(file: Path) -> Calibration:
    record = probed.read(file)
    if record.model.fused_states:
        raise UserError(f"a probe of {record.model.name}, which only drafts", "give one of a target", file=file)
    return Calibration(f"probe-{record.device}", for_server(record), None, record.model)


def _lab09() -> Calibration:
    replica = lab09_replica()
    launches = {"eagle3": replica.launch_s(lab09.EAGLE), "draft-model": replica.launch_s(lab09.DRAFT)}
    return _h100("lab09", replica.calibration, launches)


def _others(name: str, dataset: str) -> Calibration:
    fit = others.calibrated(source.figures(published.read(OTHERS)), dataset)
    return _h100(name, fit, {"eagle3": fit.parameters.launch_s})


def _h100(name: str, fit: Fit, launches: dict[str, float]) -> Calibration:
    return Calibration(name, fit, device("h100-sxm"), transformer("llama-3-8b"), launches=launches)


def _cpu_calibration() -> Calibration:
    fitted = cpu()
    launch = fitted.calibration.parameters.launch_s
    # without graphs launches are per layer (`ModelOptions.eager`), and the rest is the same for every drafter
    launches = {"eagle3": launch, "draft-model": launch}
    return Calibration(CPU_LAB, fitted.calibration, None, fitted.setting.target, fitted.setting.options, launches)


CALIBRATIONS: dict[str, Callable[[], Calibration]] = {
    "lab09": _lab09,
    "gsm8k": partial(_others, "gsm8k", "GSM8K"),
    "sharegpt": partial(_others, "sharegpt", "ShareGPT"),
    CPU_LAB: _cpu_calibration,
}
"""How to make each calibration, by name: Lab 9's baseline, the two datasets of arXiv:2601.11580, the CPU lab."""


def _cpu_traffic(lab_results: results.Results) -> dict[str, Traffic]:
    """Return the lab's traffic: prompt lengths as counted, answer lengths as its baseline wrote them."""
    prompts = prompt_sets.summary(lab_results.lab.target.tokens).set_index("workload")["mean_tokens"]
    answers = lab_results.tables.answers
    written = answers[answers["arm"] == BASELINE].groupby("workload")[["answers", "tokens"]].sum()
    mean = written["tokens"] / written["answers"]
    return {
        workload: closed_loop(float(prompts[workload]), float(mean[workload])) for workload in lab_results.lab.workloads
    }
