"""Run one arm of a lab: each missing cell in turn, recorded as it ends, then its tables.

A cell that is finished is not run again; a cell that fails is recorded as failed and the rest goes on; a server that
is gone is started again for the next cell.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from speclab import derived, prompts
from speclab.engines import choose
from speclab.engines.base import Answer, EngineFailure, EngineIdentity, Opening, Reading
from speclab.lab import Arm, EngineName, Lab
from speclab.load.closed_loop import CellLog, run_cell
from speclab.plan import ArmPlan, plan_arm
from speclab.prompts.base import PromptSet
from speclab.record import lock, models, provenance, store
from speclab.record.schema import Asked, CellRecord, ClientLag, Failure

MOST_FAILED = 0.01
"""Share of requests that may fail in a finished cell; beyond it the check ``request errors`` fails."""

MOST_SILENT = 0.5
"""Share of a window at its end in which a server must have given a token: less than that is a server that stopped."""

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


def run(plan: ArmPlan, *, repeat: int | None = None, progress: Progress | None = None) -> int:
    """Run what is missing of a plan, of one repeat or of all; return how many cells were run.

    Raises
    ------
    UserError
        The engine lacks something that the lab does not hold, a folder cannot be written, another run is at work on
        this arm, or the cells there were measured with other weights.
    """
    folder = store.arm_folder(plan.data / "runs", plan.cells[0])
    if plan.engine == "vllm":
        models.hold(folder.parent, _models(plan))
    if not plan.missing(repeat):
        return 0
    with lock.held(folder):
        store.clear(folder)
        missing = plan.missing(repeat)  # again: the run that held the lock before may have done some
        for batch in _served_together(plan.engine, missing):
            first, log_file = batch[0], folder / "server.log"
            opening = choose(plan.engine, plan.lab, plan.arm, first.workload, first.repeat, plan.options, log_file)
            _run(partial(_run_cells, opening, batch, plan.lab, plan.data / "runs", progress), opening)
    if plan.engine == "vllm":
        models.hold(folder.parent, _models(plan))  # again: a model of the hub is here only now
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


def _models(plan: ArmPlan) -> list[str]:
    drafter = plan.arm.speculation.model if plan.arm.speculation else None
    return [model for model in (plan.lab.target.model, drafter) if model is not None]


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
                if progress is not None:
                    progress(asked, asked.phases.length_s, None)
            remaining.clear()


def _record(
    runs: Path, asked: Asked, log: CellLog, identity: EngineIdentity, started_at: str, command: list[str] | None
) -> None:
    failure = _failure(log, asked.phases.window_s)
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


def _failure(log: CellLog, window_s: tuple[float, float]) -> Failure | None:
    if log.failure is not None:
        return Failure(kind=log.failure.kind, reason=log.failure.reason, log_tail=log.failure.log_tail)
    errors = [answer.error for answer in log.answers if answer.error is not None]
    if len(errors) > MOST_FAILED * len(log.answers):
        reason = f"{len(errors)} of {len(log.answers)} requests failed; the first: {errors[0]}"
        return Failure(kind="client error", reason=reason)
    opens_s, closes_s = (log.start_s + border for border in window_s)
    speaks_until_s = closes_s - MOST_SILENT * (closes_s - opens_s)
    if not any(_speaks(answer, speaks_until_s, closes_s) for answer in log.answers):
        silence_s = closes_s - speaks_until_s
        reason = f"no token in the last {silence_s:.3g} s of the window, {len(log.answers)} requests sent"
        return Failure(kind="hung", reason=reason)
    return None


def _speaks(answer: Answer, from_s: float, to_s: float) -> bool:
    first, beyond = np.searchsorted(answer.event_s, [from_s, to_s])
    return bool(first < beyond)


def _lag(lags_s: Sequence[float]) -> ClientLag | None:
    if not lags_s:
        return None
    lags_ms = 1e3 * np.asarray(lags_s)
    return ClientLag(
        mean_ms=float(lags_ms.mean()), p99_ms=float(np.percentile(lags_ms, 99)), max_ms=float(lags_ms.max())
    )


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
