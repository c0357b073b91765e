"""The closed loop: a fixed number of requests in flight, from the first moment to the last.

Each slot sends one warm-up prompt, then takes the next measured prompt whenever its answer ends. Nothing drains in
between: the window opens and closes while all slots are full, and answers that are still being written when the cell
ends keep the tokens that had arrived.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from speclab.engines.base import Answer, Engine, EngineFailure, Reading
from speclab.lab import Phases, Sampling
from speclab.prompts.base import Prompt, PromptSet

LAG_PROBE_S = 0.05
READING_EVERY_S = 1.0
FAILED_REQUEST_PAUSE_S = 0.2
"""A slot whose request failed waits this long, so that a server that refuses all is not flooded."""
MOST_RETRY_AFTER_S = 10.0
"""A slot waits as long as a server that refuses asks (``Retry-After``), but no longer than this."""


@dataclass(slots=True)
class CellLog:
    """What one cell gave. Times of answers and readings are loop times; `start_s` is the load's start."""

    start_s: float
    answers: list[Answer]
    readings: list[Reading]
    lags_s: list[float]
    """How late each probe of the event loop ran, s."""
    failure: EngineFailure | None = None

    def warm_up_count(self, concurrency: int) -> int:
        """Return how many of the first answers belong to the warm-up."""
        return min(concurrency, len(self.answers))


Progress = Callable[[float, Reading], None]
"""Called about once a second inside the window with the seconds since the start and the server's reading."""


async def run_cell(
    engine: Engine,
    prompts: PromptSet,
    concurrency: int,
    phases: Phases,
    sampling: Sampling,
    progress: Progress | None = None,
) -> CellLog:
    """Keep `concurrency` requests in flight for `phases.length_s` seconds.

    Parameters
    ----------
    engine : Engine
        Serves the arm.
    prompts : PromptSet
        Sent in order, each slot's first from the warm-up.
    concurrency : int
        Requests in flight.
    phases : Phases
        Length of the cell; readings are taken at the window's two borders and about each second between.
    sampling : Sampling
        Passed on to the engine.
    progress : Progress, optional
        Told about once a second how far the cell is.

    Returns
    -------
    CellLog
        Answers in the order of sending. A server that is gone ends the cell early and is named in ``failure``.
    """
    loop = asyncio.get_running_loop()
    measured = itertools.cycle(prompts.measured)
    warm_up = itertools.islice(itertools.cycle(prompts.warm_up), concurrency)

    with engine.load(prompts, sampling):
        log = CellLog(start_s=loop.time(), answers=[], readings=[], lags_s=[])
        ends_s = log.start_s + phases.length_s
        tasks = [asyncio.create_task(_slot(engine, log, first, measured, sampling)) for first in warm_up]
        tasks.append(asyncio.create_task(_read_window(engine, log, phases, progress)))
        tasks.append(asyncio.create_task(_probe_lag(log)))
        try:
            done, _ = await asyncio.wait(tasks, timeout=ends_s - loop.time(), return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                error = task.exception()
                if isinstance(error, EngineFailure):
                    log.failure = log.failure or error
                elif error is not None:
                    raise error
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    for answer in log.answers:
        answer.settle()
    return log


async def _slot(engine: Engine, log: CellLog, first: Prompt, then: Iterator[Prompt], sampling: Sampling) -> None:
    loop = asyncio.get_running_loop()
    for prompt in itertools.chain([first], then):
        answer = Answer(prompt, start_s=loop.time())
        log.answers.append(answer)
        await engine.send(answer, sampling)
        if answer.error is not None:
            asked_s = min(answer.retry_after_s or 0.0, MOST_RETRY_AFTER_S)
            await asyncio.sleep(max(asked_s, FAILED_REQUEST_PAUSE_S))


async def _read_window(engine: Engine, log: CellLog, phases: Phases, progress: Progress | None) -> None:
    """Read the counters at the window's borders, and about each second inside it."""
    loop = asyncio.get_running_loop()
    opens_s, closes_s = (log.start_s + border for border in phases.window_s)
    inside = np.arange(opens_s, closes_s - READING_EVERY_S / 2, READING_EVERY_S)
    for moment in (*inside.tolist(), closes_s):
        await asyncio.sleep(max(0.0, moment - loop.time()))
        reading = await engine.read()
        log.readings.append(reading)
        if progress is not None:
            progress(loop.time() - log.start_s, reading)


async def _probe_lag(log: CellLog) -> None:
    loop = asyncio.get_running_loop()
    with suppress(asyncio.CancelledError):
        while True:
            due_s = loop.time() + LAG_PROBE_S
            await asyncio.sleep(LAG_PROBE_S)
            log.lags_s.append(loop.time() - due_s)
