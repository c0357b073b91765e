"""One sitting: the servers of one or more arms, and the cells that are measured on them one after another.

A cell that fails is recorded as failed and the rest goes on; a server that is gone is started again for its arm's next
cell; an arm whose server does not come up is failed for the whole sitting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path

import numpy as np

from speclab import prompts
from speclab.engines.base import NOT_STARTED, Answer, Engine, EngineFailure, EngineIdentity, Opening, Reading
from speclab.load.closed_loop import CellLog, run_cell
from speclab.record import provenance, store
from speclab.record.schema import CellRecord, CellSpec, ClientLag, Failure

MOST_FAILED = 0.01
"""Share of requests that may fail in a finished cell; beyond it the check ``request errors`` fails."""

MOST_SILENT = 0.5
"""Share of a window at its end in which a server must have given a token: less than that is a server that stopped."""

Progress = Callable[[CellSpec, float, Reading | None], None]
"""Told a cell, the seconds of it that have passed, and the server's last reading; None at the cell's end."""


def hold(
    openings: Mapping[str, Opening],
    cells: Sequence[CellSpec],
    runs: Path,
    progress: Progress | None = None,
    clean_rate_per_s: float | None = None,
) -> None:
    """Measure cells in the order given and record each as it ends; an arm's server stays up from its first cell on.

    Parameters
    ----------
    openings : mapping of str to Opening
        How each arm among the cells is served. Several arms share one kind of event loop.
    cells : sequence of CellSpec
        What to measure.
    runs : Path
        Folder of the records.
    progress : Progress, optional
        Told how far it is.
    clean_rate_per_s : float, optional
        What the client's self-test found, for the records.
    """
    loop_factory = next(iter(openings.values())).loop_factory

    def sit() -> None:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(_measure_all(openings, cells, runs, progress, clean_rate_per_s))

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        sit()  # in the main thread, so that Ctrl-C cancels the work and the servers are stopped
    else:  # Jupyter's loop is running
        with ThreadPoolExecutor(max_workers=1) as thread:
            thread.submit(sit).result()


async def _measure_all(
    openings: Mapping[str, Opening],
    cells: Sequence[CellSpec],
    runs: Path,
    progress: Progress | None,
    clean_rate_per_s: float | None,
) -> None:
    async with AsyncExitStack() as ending:
        servers = {arm: _ArmServer(opening) for arm, opening in openings.items()}
        for server in servers.values():
            ending.push_async_callback(server.stop)
        for asked in cells:
            log, identity, started_at = await servers[asked.arm].measure(asked, progress)
            beside = sorted(arm for arm, server in servers.items() if server.is_up and arm != asked.arm)
            _record(runs, asked, log, identity, started_at, openings[asked.arm].command, beside, clean_rate_per_s)
            if progress is not None:
                progress(asked, asked.phases.length_s, None)


class _ArmServer:
    """One arm's server: started at its first cell, and again after a cell that failed."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._engine: Engine | None = None
        self._refused: EngineFailure | None = None
        self._stack = AsyncExitStack()

    @property
    def is_up(self) -> bool:
        return self._engine is not None

    async def measure(self, asked: CellSpec, progress: Progress | None) -> tuple[CellLog, EngineIdentity, str]:
        """Return what one cell gave, what served it, and when it began."""
        try:
            engine = await self._started()
        except EngineFailure as failure:  # the server does not come up: so it is for every cell that is left
            self._refused = failure
            log = CellLog(start_s=0.0, answers=[], readings=[], lags_s=[], failure=failure)
            identity = EngineIdentity(engine=asked.engine, version=NOT_STARTED, device=asked.device)
            return log, identity, provenance.now()
        started_at = provenance.now()
        tell = None if progress is None else _teller(progress, asked)
        questions = prompts.load(asked.workload, asked.sampling.seed)
        log = await run_cell(engine, questions, asked.concurrency, asked.phases, asked.sampling, tell)
        identity = engine.identity
        if log.failure is not None:
            await self.stop()  # what is gone is started again for the next cell
        return log, identity, started_at

    async def stop(self) -> None:
        self._engine = None
        await self._stack.aclose()

    async def _started(self) -> Engine:
        if self._refused is not None:
            raise self._refused
        if self._engine is None:
            self._engine = await self._stack.enter_async_context(self._opening.engine())
        return self._engine


def _record(
    runs: Path,
    asked: CellSpec,
    log: CellLog,
    identity: EngineIdentity,
    started_at: str,
    command: list[str] | None,
    beside: list[str],
    clean_rate_per_s: float | None,
) -> None:
    failure = _failure(log, asked.phases.window_s)
    record = CellRecord(
        asked=asked,
        asked_sha256=asked.sha256,
        status="failed" if failure else "ok",
        failure=failure,
        window_s=asked.phases.window_s,
        readings=tuple(reading.model_copy(update={"at_s": reading.at_s - log.start_s}) for reading in log.readings),
        client_lag=_lag(log),
        client_clean_rate_per_s=clean_rate_per_s,
        provenance=provenance.of(identity, started_at, command=command, extra={"beside": beside} if beside else None),
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


def _lag(log: CellLog) -> ClientLag | None:
    if not log.lags_s:
        return None
    lags_ms = 1e3 * np.asarray(log.lags_s)
    reads, merged = (sum(getattr(answer, name) for answer in log.answers) for name in ("reads", "merged_reads"))
    return ClientLag(
        mean_ms=float(lags_ms.mean()),
        p99_ms=float(np.percentile(lags_ms, 99)),
        max_ms=float(lags_ms.max()),
        reads=reads or None,
        merged_reads=merged if reads else None,
    )


def _teller(progress: Progress, asked: CellSpec) -> Callable[[float, Reading], None]:
    return lambda elapsed_s, reading: progress(asked, elapsed_s, reading)
