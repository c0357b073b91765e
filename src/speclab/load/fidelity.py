"""How faithfully this client sees a stream whose gaps are known: the closed loop against a scripted stub.

The stub (`speclab.engines.mock`) runs in a process of its own, on a core of its own where the system allows it, and
keeps a schedule of one step each `gap_ms`. What the client saw is held against it: gaps of each request, and the events
themselves.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import numpy as np
from numpy.typing import NDArray
from pydantic import computed_field

from speclab.config import Frozen
from speclab.engines.base import EngineFailure
from speclab.engines.endpoint import Endpoint, NotServing
from speclab.engines.mock_batch import Sent
from speclab.engines.mock_script import Script
from speclab.errors import UserError
from speclab.lab import Phases, Sampling
from speclab.load.closed_loop import CellLog, run_cell
from speclab.prompts.base import Prompt, PromptSet

MOST_P99 = 0.10
"""Share by which the 99th percentile of the gaps may leave the scripted gap."""
MOST_MEAN = 0.005
"""Share by which their mean may."""
PHASES = Phases(length_s=2.4, drop_first_s=0.6, drop_last_s=0.2)
ANSWER_TOKENS = (150, 250)
"""Answers of several lengths, so that their ends and the starts of the next ones fall among others' events."""
_PROMPTS = PromptSet(
    measured=tuple(Prompt("selftest", f"selftest/{number}", f"Say nothing {number}.") for number in range(97)),
    warm_up=tuple(Prompt("selftest", f"warm-up/{number}", f"Say something {number}.") for number in range(97)),
)


class Trial(Frozen):
    """What a client saw of one load."""

    streams: int
    gap_ms: float
    """Scripted time between a request's events, ms."""
    seen_per_s: float
    """Events that came in, of all requests, 1/s."""
    p50_ms: float
    p99_ms: float
    mean_ms: float
    """Gaps between the events of a request as the client saw them, ms."""
    lost: int
    """Events that were sent in the window and did not come in it, less those of one step; and events of answers that
    came two in one."""
    stub_p99_ms: float | None
    """The gaps as the stub sent them."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def rate_per_s(self) -> float:
        """Events that the stub is scripted to send, 1/s."""
        return 1000 * self.streams / self.gap_ms

    @computed_field  # type: ignore[prop-decorator]
    @property
    def is_disturbed(self) -> bool:
        """Whether the stub itself did not send as scripted: the trial then says nothing about the client."""
        return self.stub_p99_ms is None or abs(self.stub_p99_ms / self.gap_ms - 1) > MOST_P99

    @computed_field  # type: ignore[prop-decorator]
    @property
    def is_clean(self) -> bool:
        """Whether the client saw what was sent."""
        return (
            self.lost == 0
            and abs(self.p99_ms / self.gap_ms - 1) <= MOST_P99
            and abs(self.mean_ms / self.gap_ms - 1) <= MOST_MEAN
        )


@contextmanager
def stub(script: Script) -> Iterator[str]:
    """Serve a script in a process of its own, away from this one's cores; yield its address.

    Raises
    ------
    UserError
        It did not start.
    """
    command = [sys.executable, "-m", "speclab.engines.mock"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            with suppress(BrokenPipeError):
                server.stdin.write(script.model_dump_json() + "\n")
                server.stdin.flush()
            words = server.stdout.readline().split()
            if not words:
                raise UserError("the stub of the self-test did not start", "try --no-selftest")
            with _apart(server.pid):
                yield words[-1]
        finally:
            with suppress(BrokenPipeError):
                server.stdin.close()  # it serves until its input ends


def trial(url: str, streams: int, gap_ms: float, phases: Phases = PHASES) -> Trial:
    """Return what this client sees of a stub's stream.

    Parameters
    ----------
    url : str
        Address of a stub with steps of `gap_ms` and one token in each.
    streams : int
        Requests in flight.
    gap_ms : float
        The stub's step, ms.
    phases : Phases
        Length of the trial and what is dropped at its ends.

    Raises
    ------
    UserError
        A request failed.
    """
    try:
        log = asyncio.run(_load(url, streams, phases))
    except (NotServing, EngineFailure) as failure:
        raise UserError(f"the stub of the self-test does not serve: {failure.reason}", "try --no-selftest") from None
    failed = next((answer.error for answer in log.answers if answer.error), log.failure)
    if failed:
        raise UserError(f"the self-test's load failed: {failed}", "try --no-selftest")
    opens_s, closes_s = (log.start_s + border for border in phases.window_s)
    sent = sent_by(url, opens_s, closes_s)
    times = [np.asarray(answer.event_s, dtype=np.float64) for answer in log.answers]
    inside = [of_one[(of_one >= opens_s) & (of_one < closes_s)] for of_one in times]
    seen = sum(len(of_one) for of_one in inside)
    merged = sum(answer.output_tokens - len(answer.event_s) for answer in log.answers if answer.output_tokens)
    gaps_ms = gaps(inside)
    p50, p99 = np.percentile(gaps_ms, [50, 99]) if len(gaps_ms) else (np.inf, np.inf)
    return Trial(
        streams=streams,
        gap_ms=gap_ms,
        seen_per_s=seen / (closes_s - opens_s),
        p50_ms=p50,
        p99_ms=p99,
        mean_ms=gaps_ms.mean() if len(gaps_ms) else np.inf,
        lost=max(0, sent.events - seen - streams) + merged,
        stub_p99_ms=sent.gap_p99_ms,
    )


def script_of(gap_ms: float) -> Script:
    """Return the stub's script for a gap."""
    return Script(step_ms=gap_ms, answer_tokens=ANSWER_TOKENS)


def gaps(times_s: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the gaps between the events of each request, ms."""
    return 1000 * np.concatenate([np.diff(of_one) for of_one in times_s] or [np.empty(0)])


def sent_by(url: str, from_s: float, to_s: float) -> Sent:
    """Return what the stub sent between two moments of this machine's monotonic clock."""
    page = f"{url.removesuffix('/v1')}/mock/sent?from_s={from_s!r}&to_s={to_s!r}"
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(page, timeout=10) as response:
        return Sent.model_validate(json.load(response))


async def _load(url: str, streams: int, phases: Phases) -> CellLog:
    async with Endpoint(url, "mock", "stub") as endpoint:
        await endpoint.probe()  # as before every cell: what a client does for the first time takes longer
        await endpoint.read()
        return await run_cell(endpoint, _PROMPTS, streams, phases, Sampling(max_tokens=max(ANSWER_TOKENS)))


@contextmanager
def _apart(pid: int) -> Iterator[None]:
    """Keep another process on one core and this one on the others, where the system has and allows it."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(cores) < 2:
        yield
        return
    try:
        os.sched_setaffinity(pid, cores[-1:])
        os.sched_setaffinity(0, cores[:-1])
        yield
    finally:
        os.sched_setaffinity(0, cores)
