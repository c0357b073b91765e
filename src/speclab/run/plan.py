"""What there is to run of one arm: its cells, what each is asked, and which of them are still missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args

from speclab import lab as labs
from speclab import paths, prompts
from speclab.budget.run_plan import RunPlan
from speclab.cache import keys
from speclab.cache.code import package_source
from speclab.config import ADVICE, validated
from speclab.engines import EngineOptions, vllm_flags
from speclab.errors import UserError
from speclab.lab import Arm, EngineName, Lab, SimulatedDrafter, SimulatedTarget, WorkloadName
from speclab.record import store
from speclab.record.schema import CellSpec
from speclab.roofline.devices import DEVICES, Device
from speclab.roofline.transformers import TRANSFORMERS, Transformer

MEASURING_VERSION = "1"
"""Part of every measured cell's hash. Raise it when the same request would now be measured differently."""

TRIALS = Path(".build") / "trials"
"""Folder under the checkout's root for runs with other values than the lab's files hold."""

SIMULATING = ("speclab.engines.simulated.opening", "speclab.load.closed_loop.run_cell")
"""What decides a simulated cell: the code that these reach is part of the cell's hash."""

BY_VALUE = ("speclab.roofline.devices.DEVICES", "speclab.roofline.transformers.TRANSFORMERS")
"""Tables of which a simulated cell takes single entries: those are part of its hash, the tables are not."""


@dataclass(frozen=True, slots=True)
class ArmPlan:
    """What is to be run of one arm, and where it is kept.

    Attributes
    ----------
    lab, arm, engine, options
        What serves what.
    data : Path
        Folder of ``runs/`` and ``derived/``.
    cells : tuple of CellSpec
        The cells that are wanted, in the order in which they are run.
    keeps_tables : bool
        Whether the tables of these cells are written. In the checkout's own folder that is so only for a whole arm as
        its files describe it: a part may not replace those tables.
    is_trial : bool
        Whether values that were given make other cells of these than the lab's files do. Without a folder of its own a
        trial goes to `TRIALS`: what was measured as the files say is not replaced.
    """

    lab: Lab
    arm: Arm
    engine: EngineName
    options: EngineOptions
    data: Path
    cells: tuple[CellSpec, ...]
    keeps_tables: bool
    is_trial: bool

    def folder(self, asked: CellSpec) -> Path:
        """Return the folder of one cell."""
        return store.cell_folder(self.data / "runs", asked)

    def missing(self, repeat: int | None = None) -> list[CellSpec]:
        """Return the cells that are still to be run, of one repeat or of all."""
        return [
            asked
            for asked in self.cells
            if repeat in (None, asked.repeat) and not store.is_finished(self.folder(asked), asked)
        ]


def plan_arm(
    lab: str,
    arm: str,
    *,
    engine: EngineName | None = None,
    workloads: Sequence[str] | None = None,
    concurrencies: Sequence[int] | None = None,
    repeats: int | None = None,
    out: str | Path | None = None,
    label: str | None = None,
    speculation: dict[str, Any] | None = None,
    server: dict[str, Any] | None = None,
    simulated: dict[str, Any] | None = None,
    phases: dict[str, float] | None = None,
    options: EngineOptions | None = None,
    planned: RunPlan | None = None,
) -> ArmPlan:
    """Return what there is to run of one arm; nothing is started.

    Parameters
    ----------
    lab, arm : str
        Names of the lab and of one of its arms.
    engine : {'simulated', 'endpoint', 'vllm'}, optional
        What serves; the lab's own engine where not given.
    workloads, concurrencies : optional
        A part of the lab's; what the arm says where not given.
    repeats : int, optional
        How often each cell is run; as the arm or the lab says where not given.
    out : str or Path, optional
        Folder for ``runs/`` and ``derived/``; where not given the checkout's ``data``, or `TRIALS` for a trial.
    label, speculation, server, simulated, phases : optional
        Values that replace those of the lab's files (this is how papermill's parameters come in).
    options : EngineOptions, optional
        Where the endpoint is, how it is named.
    planned : RunPlan, optional
        What ``speclab plan`` wrote: its cells alone, with its phases and repeats. They are a trial.

    Raises
    ------
    UserError
        A mistake in what was asked for, the endpoint's address included.
    """
    _refuse_slips(engine, workloads, concurrencies, simulated, options)
    written_lab = labs.load(lab)
    written_arm = written_lab.arm(arm)
    if planned is not None:
        if phases is not None or repeats is not None:
            raise UserError("given with other phases or repeats", "a plan has its own: leave those out", key="--plan")
        repeats = planned.repeats
    the_lab = _with(written_lab, phases=phases)
    given = {"label": label, "speculation": speculation, "server": server, "simulated": simulated, "repeats": repeats}
    the_arm = _with(written_arm, **given)
    the_engine = engine or the_lab.engine
    options = options or EngineOptions()
    grid = _grid(the_lab, the_arm, the_engine, options)
    if planned is not None:
        grid = _as_planned(grid, planned)
    wanted = tuple(asked for asked in grid if _is_in(asked, the_lab, the_arm, workloads, concurrencies))
    as_written = (the_lab, the_arm) == (written_lab, written_arm)
    differs = not as_written and _differ(grid, _grid(written_lab, written_arm, the_engine, options))
    is_trial = planned is not None or differs
    if planned is not None and not wanted:
        raise UserError(f"the plan holds none of these cells of {arm}", "name other arms or places", key="--plan")
    return ArmPlan(
        lab=the_lab,
        arm=the_arm,
        engine=the_engine,
        options=options,
        data=Path(out) if out is not None else paths.root() / (TRIALS if is_trial else "data"),
        cells=wanted,
        keeps_tables=out is not None or is_trial or (as_written and len(wanted) == len(grid)),
        is_trial=is_trial,
    )


def _refuse_slips(
    engine: object, workloads: object, concurrencies: object, simulated: object, options: EngineOptions | None
) -> None:
    """Name what a hand, or papermill's command line, gives in the wrong shape."""
    if engine is not None and engine not in get_args(EngineName):
        raise UserError(f"found {engine!r}", f"choose one of {', '.join(get_args(EngineName))}", key="engine")
    for key, given, example in (
        ("workloads", workloads, "[chat, revision]"),
        ("concurrencies", concurrencies, "[1, 4]"),
    ):
        if given is not None and not isinstance(given, list | tuple):
            raise UserError(f"found {given!r}", f"write a list: {example}", key=key)
    if isinstance(simulated, dict) and {"device", "answers"} & simulated.keys():
        remedy = "give an arm's file, labs/LAB/ARM.yml: it has the key `arm`"
        raise UserError("found a lab's assumptions, as in lab.yml", remedy, key="simulated")
    device = None if options is None else options.device
    if device is not None and not re.fullmatch(labs.NAME, device):
        raise UserError(f"found {device!r}", ADVICE["string_pattern_mismatch"], key="device")


def _grid(lab: Lab, arm: Arm, engine: EngineName, options: EngineOptions) -> list[CellSpec]:
    device, code_version = options.device_of(engine, lab), _code_version(engine, lab)
    prompts_sha256 = {name: prompts.load(name, lab.sampling.seed).sha256 for name in arm.workloads or lab.workloads}
    return [
        CellSpec(
            lab=lab.name,
            arm=arm.arm,
            workload=workload,
            concurrency=concurrency,
            repeat=repeat,
            engine=engine,
            device=device,
            endpoint=options.endpoint_of(engine),
            target=lab.target.model,
            phases=lab.phases,
            sampling=lab.sampling,
            speculation=arm.speculation,
            server=vllm_flags.of(lab, arm),
            environment=lab.environment,
            simulated_target=_target_for(workload, lab.simulated) if engine == "simulated" else None,
            simulated_drafter=_drafter_for(workload, arm.simulated) if engine == "simulated" else None,
            drafter_shape_sha256=_drafter_shape(arm) if engine == "simulated" else None,
            prompts_sha256=prompts_sha256[workload],
            code_version=code_version,
        )
        for repeat, workload, concurrency in lab.grid(arm)
    ]


def _as_planned(grid: Sequence[CellSpec], planned: RunPlan) -> list[CellSpec]:
    """Return those cells of one arm that a plan holds, with its phases."""
    return [
        asked.model_copy(update={"phases": phases, "planned": True})
        for asked in grid
        if (phases := planned.phases(asked.arm).get((asked.workload, asked.concurrency))) is not None
    ]


def _differ(grid: Sequence[CellSpec], written: Sequence[CellSpec]) -> bool:
    """Return whether any cell that both hold is asked for in another way."""
    known = {asked.cell: asked.sha256 for asked in written}
    return any(known.get(asked.cell, asked.sha256) != asked.sha256 for asked in grid)


def _code_version(engine: EngineName, lab: Lab) -> str:
    if engine != "simulated":
        return MEASURING_VERSION
    return keys.joined(package_source().sha256(*SIMULATING, by_value=BY_VALUE), keys.of_values(*_simulated_on(lab)))


def _simulated_on(lab: Lab) -> list[Device | Transformer | str | None]:
    """Return the device and the target's shape of a simulated lab; a name that is unknown stands for itself."""
    if lab.simulated is None:
        return []
    device, shape = lab.simulated.device, lab.simulated.shape
    return [DEVICES.get(device, device), TRANSFORMERS.get(shape, shape)]


def _drafter_shape(arm: Arm) -> str | None:
    shape = arm.simulated.shape if arm.simulated else None
    return None if shape is None else keys.of_values(TRANSFORMERS.get(shape, shape))


def _is_in(
    asked: CellSpec, lab: Lab, arm: Arm, workloads: Sequence[str] | None, concurrencies: Sequence[int] | None
) -> bool:
    for name, chosen, known in (
        ("workload", workloads, arm.workloads or lab.workloads),
        ("concurrency", concurrencies, arm.concurrencies or lab.concurrencies),
    ):
        for value in chosen or ():
            if value not in known:
                remedy = f"{arm.arm} of {lab.name} has {', '.join(map(str, known))}"
                raise UserError(f"unknown {name} {value!r}", remedy, key=name)
    return (not workloads or asked.workload in workloads) and (not concurrencies or asked.concurrency in concurrencies)


ModelT = TypeVar("ModelT", Lab, Arm)


def _with(model: ModelT, **given: Any) -> ModelT:
    """Return a lab or an arm with the values that were given, validated as its file is."""
    changes = {name: value for name, value in given.items() if value is not None}
    return validated(type(model), {**model.model_dump(), **changes}) if changes else model


def _target_for(workload: WorkloadName, assumed: SimulatedTarget | None) -> SimulatedTarget | None:
    """Keep of the simulator's assumptions what concerns one workload, so that a change to another leaves this hash."""
    if assumed is None:
        return None
    answers = {name: value for name, value in assumed.answers.items() if name == workload}
    return assumed.model_copy(update={"answers": answers})


def _drafter_for(workload: WorkloadName, assumed: SimulatedDrafter | None) -> SimulatedDrafter | None:
    if assumed is None:
        return None
    acceptance = {name: value for name, value in assumed.acceptance.items() if name == workload}
    draft_rate = {name: value for name, value in assumed.draft_rate.items() if name == workload}
    return assumed.model_copy(update={"acceptance": acceptance, "draft_rate": draft_rate})
