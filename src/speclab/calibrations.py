"""The calibrations that this project holds, made from its own files each time: no fitted number is stored."""

from __future__ import annotations

from functools import cache

from speclab import lab as labs
from speclab import prompts as prompt_sets
from speclab import published, results
from speclab.findings.validation import lab09, measured
from speclab.findings.validation.lab09 import Twin
from speclab.findings.validation.measured import Calibrated, Setting
from speclab.lab import BASELINE
from speclab.model.calibration.parameters import CPU_135M
from speclab.model.calibration.price import Options
from speclab.model.calibration.traffic import Traffic, closed_loop
from speclab.model.transformers import transformer

CPU_LAB = "cpu-smollm2"
_CPU_SHAPES = {"eagle3": "eagle3-head-135m", "draft_model": "smollm2-135m", "ngram": None}


@cache
def lab09_twin() -> Twin:
    """Return the model fitted on three figures of Lab 9's baseline."""
    return lab09.twin(published.read("lab09"), labs.load("lab09"))


@cache
def cpu() -> Calibrated:
    """Return the model fitted on two concurrencies of the CPU lab's baseline and forced arm.

    Raises
    ------
    UserError
        The lab's tables are missing or damaged.
    """
    found = results.of(CPU_LAB)
    arms = {name: found.lab.arm(name) for name in found.lab.arms}
    drafters = {
        name: (arm.k, transformer(shape) if (shape := _CPU_SHAPES[arm.speculation.method]) else None)
        for name, arm in arms.items()
        if arm.speculation is not None
    }
    setting = Setting(
        target=transformer("smollm2-135m"),
        drafters=drafters,
        traffic=_cpu_traffic(found),
        start=CPU_135M,
        fitted_arm="eagle3-forced",
        fitted_workload="chat",
        fitted_at=(found.lab.concurrencies[0], found.lab.concurrencies[-1]),
        options=Options(eager=bool(found.lab.server.get("enforce-eager"))),
    )
    return measured.calibrated(found.tables.cells, setting)


def _cpu_traffic(found: results.Results) -> dict[str, Traffic]:
    """Return the lab's traffic: prompts as counted, answers as its baseline wrote them."""
    prompts = prompt_sets.summary(found.lab.target.tokens).set_index("workload")["mean_tokens"]
    answers = found.tables.answers
    written = answers[answers["arm"] == BASELINE].groupby("workload")[["answers", "tokens"]].sum()
    mean = written["tokens"] / written["answers"]
    return {workload: closed_loop(float(prompts[workload]), float(mean[workload])) for workload in found.lab.workloads}
