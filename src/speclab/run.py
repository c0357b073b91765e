"""Run one arm of a lab: each missing cell in turn, recorded as it ends, then its tables.

A cell that is finished is not run again; a cell that fails is recorded as failed and the rest goes on; a server that
is gone is started again for the next cell.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from speclab import derived, paths, prompts
from speclab import lab as labs
from speclab.engines import Options, choose
from speclab.engines.base import EngineFailure, EngineIdentity, Opening, Reading
from speclab.errors import UserError
from speclab.lab import Arm, EngineName, Lab, SimulatedDrafter, SimulatedTarget, WorkloadName
from speclab.load.closed_loop import CellLog, run_cell
from speclab.prompts.base import PromptSet
from speclab.record import provenance, store
from speclab.record.schema import Asked, CellRecord, ClientLag, Failure
from speclab.validation import validated

MEASURING_VERSION = "1"
"""Part of every measured cell's hash. Raise it when the same request would now be measured differently."""

SIMULATING = ("model", "load", "engines/base.py", "engines/simulated*.py", "engines/virtual_time.py")
"""The code that decides a simulated cell; its content is part of the cell's hash."""

Progress = Callable[[Asked, float, Reading | None], None]
"""Told a cell, the seconds of it that have passed, and the server's last reading; None at the cell's end."""


@dataclass(frozen=True, slots=True)
class ArmRun:
    """One arm's cells after a run.

    Attributes
    ----------
    lab, arm
        What was run.
    tables : derived.Tables
        The tables of the cells asked for.
    ran, kept : int
        How many cells were run now, and how many were finished before.
    """

    lab: Lab
    arm: Arm
    tables: derived.Tables
    ran: int
    kept: int

    @property
    def source(self) -> str:
        """The badge of every number of this run."""
        return self.tables.source


@dataclass(frozen=True, slots=True)
class ArmPlan:
    """What is to be run of one arm, and where it is kept.

    Attributes
    ----------
    lab, arm, engine, options
        What serves what.
    data : Path
        Folder of ``runs/`` and ``derived/``.
    cells : tuple of Asked
        The cells that are wanted, in the order in which they are run.
    keeps_tables : bool
        Whether the tables of these cells are written: not where a part would replace the whole's.
    """

    lab: Lab
    arm: Arm
    engine: EngineName
    options: Options
    data: Path
    cells: tuple[Asked, ...]
    keeps_tables: bool

    def folder(self, asked: Asked) -> Path:
        """Return the folder of one cell."""
        return store.cell_folder(self.data / "runs", asked)

    def missing(self, repeat: int | None = None) -> list[Asked]:
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
    options: Options | None = None,
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
        Folder for ``runs/`` and ``derived/``; the checkout's ``data`` where not given.
    label, speculation, server, simulated, phases : optional
        Values that replace those of the lab's files (this is how papermill's parameters come in).
    options : Options, optional
        Where the endpoint is, how it is named.

    Raises
    ------
    UserError
        A mistake in what was asked for.
    """
    the_lab = _with(labs.load(lab), phases=phases)
    given = {"label": label, "speculation": speculation, "server": server, "simulated": simulated, "repeats": repeats}
    the_arm = _with(the_lab.arm(arm), **given)
    the_engine = engine or the_lab.engine
    options = options or Options()
    grid = _grid(the_lab, the_arm, the_engine, options)
    wanted = tuple(asked for asked in grid if _is_in(asked, the_lab, the_arm, workloads, concurrencies))
    return ArmPlan(
        lab=the_lab,
        arm=the_arm,
        engine=the_engine,
        options=options,
        data=Path(out) if out is not None else paths.root() / "data",
        cells=wanted,
        keeps_tables=out is not None or len(wanted) == len(grid),
    )


def run(plan: ArmPlan, *, repeat: int | None = None, progress: Progress | None = None) -> int:
    """Run what is missing of a plan, of one repeat or of all; return how many cells were run.

    Raises
    ------
    UserError
        The engine lacks something that the lab does not hold, or a folder cannot be written.
    """
    missing = plan.missing(repeat)
    for batch in _served_together(plan.engine, missing):
        log_file = store.arm_folder(plan.data / "runs", batch[0]) / "server.log"
        first = batch[0]
        opening = choose(plan.engine, plan.lab, plan.arm, first.workload, first.repeat, plan.options, log_file)
        _run(partial(_run_cells, opening, batch, plan.lab, plan.data / "runs", progress), opening)
    return len(missing)


def tables_of(plan: ArmPlan) -> derived.Tables:
    """Return the tables of a plan's cells, all of which have been run, and keep them where the plan says so."""
    tables = derived.of([store.read(plan.folder(asked)) for asked in plan.cells])
    if plan.keeps_tables:
        machine = f"{plan.engine}-{plan.cells[0].device}"
        derived.write(tables, derived.folder(plan.data, plan.lab.name, machine), plan.arm.arm)
    return tables


def run_arm(lab: str, arm: str, *, progress: Progress | None = None, **given: Any) -> ArmRun:
    """Run what is missing of one arm and return its tables; what may be given is `plan_arm`'s."""
    plan = plan_arm(lab, arm, **given)
    ran = run(plan, progress=progress)
    return ArmRun(plan.lab, plan.arm, tables_of(plan), ran=ran, kept=len(plan.cells) - ran)


def _grid(lab: Lab, arm: Arm, engine: EngineName, options: Options) -> list[Asked]:
    device = options.device_of(engine, lab)
    return [
        Asked(
            lab=lab.name,
            arm=arm.arm,
            workload=workload,
            concurrency=concurrency,
            repeat=repeat,
            engine=engine,
            device=device,
            target=lab.target.model,
            phases=lab.phases,
            sampling=lab.sampling,
            speculation=arm.speculation,
            server=lab.server_flags(arm),
            environment=lab.environment,
            simulated_target=_target_for(workload, lab.simulated) if engine == "simulated" else None,
            simulated_drafter=_drafter_for(workload, arm.simulated) if engine == "simulated" else None,
            prompts_sha256=prompts.load(workload, lab.sampling.seed).sha256,
            code_version=_code_version(engine),
        )
        for repeat in range(arm.repeats or lab.repeats)
        for workload in arm.workloads or lab.workloads
        for concurrency in arm.concurrencies or lab.concurrencies
    ]


async def _run_cells(opening: Opening, cells: Sequence[Asked], lab: Lab, runs: Path, progress: Progress | None) -> None:
    remaining = deque(cells)
    while remaining:
        try:
            async with opening.engine() as engine:
                while remaining:
                    asked = remaining[0]
                    started_at = provenance.now()
                    tell = None if progress is None else _teller(progress, asked)
                    log = await run_cell(
                        engine, _prompts(asked, lab), asked.concurrency, asked.phases, asked.sampling, tell
                    )
                    remaining.popleft()
                    _record(runs, asked, log, engine.identity, started_at, opening.command)
                    if progress is not None:
                        progress(asked, asked.phases.length_s, None)
                    if log.failure is not None:
                        break  # what is gone is started again for the next cell
        except EngineFailure as failure:  # the server does not come up: so it is for every cell that is left
            identity = EngineIdentity(engine=cells[0].engine, version="not started", device=cells[0].device)
            for asked in remaining:
                log = CellLog(start_s=0.0, answers=[], readings=[], lags_s=[], failure=failure)
                _record(runs, asked, log, identity, provenance.now(), opening.command)
            remaining.clear()


def _record(
    runs: Path, asked: Asked, log: CellLog, identity: EngineIdentity, started_at: str, command: list[str] | None
) -> None:
    failure = _failure(log)
    record = CellRecord(
        asked=asked,
        asked_sha256=asked.sha256,
        status="failed" if failure else "ok",
        failure=failure,
        window_s=asked.phases.window_s,
        readings=tuple(reading.model_copy(update={"at_s": reading.at_s - log.start_s}) for reading in log.readings),
        client_lag=_lag(log.lags_s),
        provenance=provenance.of(identity, started_at, command=command),
    )
    table = store.to_table(log, log.warm_up_count(asked.concurrency))
    store.write(store.cell_folder(runs, asked), record, table)


def _failure(log: CellLog) -> Failure | None:
    if log.failure is not None:
        return Failure(kind=log.failure.kind, reason=log.failure.reason, log_tail=log.failure.log_tail)
    errors = [answer.error for answer in log.answers if answer.error is not None]
    if errors and not any(len(answer.event_s) for answer in log.answers):
        return Failure(kind="client error", reason=f"all {len(errors)} requests failed; the first: {errors[0]}")
    return None


def _lag(lags_s: Sequence[float]) -> ClientLag | None:
    if not lags_s:
        return None
    lags_ms = 1e3 * np.asarray(lags_s)
    return ClientLag(
        mean_ms=float(lags_ms.mean()), p99_ms=float(np.percentile(lags_ms, 99)), max_ms=float(lags_ms.max())
    )


def _code_version(engine: EngineName) -> str:
    return _simulating_sha256() if engine == "simulated" else MEASURING_VERSION


@cache
def _simulating_sha256() -> str:
    package = Path(__file__).parent
    files = [file for pattern in SIMULATING for path in sorted(package.glob(pattern)) for file in _modules(path)]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def _modules(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def _served_together(engine: EngineName, cells: Sequence[Asked]) -> list[list[Asked]]:
    """Group cells by the server that can serve them: one for a whole arm; the simulator is made anew for each."""
    if engine == "simulated":
        return [[asked] for asked in cells]
    return [list(cells)] if cells else []


def _run(work: Callable[[], Coroutine[Any, Any, None]], opening: Opening) -> None:
    """Run a coroutine in the engine's own kind of event loop, also where one is running already (Jupyter)."""

    def run() -> None:
        with asyncio.Runner(loop_factory=opening.loop_factory) as runner:
            runner.run(work())

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        run()  # in the main thread, so that Ctrl-C cancels the work and the server is stopped
    else:
        with ThreadPoolExecutor(max_workers=1) as thread:
            thread.submit(run).result()


def _teller(progress: Progress, asked: Asked) -> Callable[[float, Reading], None]:
    return lambda elapsed_s, reading: progress(asked, elapsed_s, reading)


def _prompts(asked: Asked, lab: Lab) -> PromptSet:
    return prompts.load(asked.workload, lab.sampling.seed)


def _is_in(
    asked: Asked, lab: Lab, arm: Arm, workloads: Sequence[str] | None, concurrencies: Sequence[int] | None
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
    coverage = {name: value for name, value in assumed.coverage.items() if name == workload}
    return assumed.model_copy(update={"acceptance": acceptance, "coverage": coverage})
