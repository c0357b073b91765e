"""Says what will fail or mislead before any weight is loaded, why, and what would do.

`examine` runs pure rules over the facts of one machine (`speclab.doctor.machine.probe`). Each rule cites the public
issue or page that it comes from, where there is one. What cannot be known from here is said to be so.
"""

from __future__ import annotations

from collections.abc import Sequence

from speclab.doctor import client, flags, graphs, memory, versions, weights
from speclab.doctor.base import LEVELS, Case, Diagnosis, Machine, Rule
from speclab.lab import BASELINE, Arm, EngineName, Lab

__all__ = ["RULES", "Case", "Diagnosis", "Machine", "examine"]

RULES: dict[EngineName, tuple[Rule, ...]] = {
    "vllm": (
        versions.installed,
        memory.device,
        weights.target_files,
        versions.accepted,
        versions.method,
        versions.runner,
        weights.drafter_files,
        weights.vocabulary,
        weights.eagle,
        weights.positions,
        memory.main_memory,
        memory.gpus,
        memory.kv_room,
        flags.seats,
        flags.batched_tokens,
        graphs.graphs,
        flags.scheduling,
        flags.same_flags,
        flags.prefix_caching,
        flags.lookup,
        flags.streaming,
        flags.address,
        client.capacity,
        memory.disk,
    ),
    "endpoint": (client.endpoint, client.capacity, memory.disk),
    "simulated": (memory.disk,),
}
"""By engine, in the order in which their diagnoses are shown."""


def examine(lab: Lab, arms: Sequence[Arm], engine: EngineName, machine: Machine) -> list[Diagnosis]:
    """Return what every rule says about arms of a lab on one machine.

    Parameters
    ----------
    lab, arms : Lab, sequence of Arm
        What would be run.
    engine : {'simulated', 'endpoint', 'vllm'}
        By what; a server that is up hides most of its flags.
    machine : Machine
        Facts, from `speclab.doctor.machine.probe` or made up.

    Returns
    -------
    list of Diagnosis
        First those of every arm (``arm`` is None), then arm by arm; in each, worst first.
    """
    baseline = _baseline(lab, arms)
    by_arm: dict[str, list[Diagnosis]] = {}
    for arm in arms:
        case = Case(lab, arm, baseline, machine, engine)
        by_arm[arm.arm] = [diagnosis for rule in RULES[engine] for diagnosis in rule(case)]
    first = next(iter(by_arm.values()), [])
    said_of_all = [diagnosis for diagnosis in first if all(diagnosis in said for said in by_arm.values())]
    if len(arms) < 2:
        said_of_all = []
    diagnoses = _worst_first(said_of_all)
    for name, said in by_arm.items():
        own = [diagnosis.model_copy(update={"arm": name}) for diagnosis in said if diagnosis not in said_of_all]
        diagnoses += _worst_first(own)
    return diagnoses


def _baseline(lab: Lab, arms: Sequence[Arm]) -> Arm | None:
    given = next((arm for arm in arms if arm.arm == BASELINE), None)
    return given or (lab.arm(BASELINE) if BASELINE in lab.arms else None)


def _worst_first(diagnoses: list[Diagnosis]) -> list[Diagnosis]:
    return sorted(diagnoses, key=lambda diagnosis: LEVELS.index(diagnosis.level))
