"""What this client carries: the closed loop against a null server, so that a client is not taken for a slow GPU.

The null server (`speclab.engines.mock`) runs in a process of its own and answers without pause. It is no faster than
the client, so the rate is what both carry together: a lower bound of the client's own.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys

import numpy as np

from speclab.config import Frozen
from speclab.engines.endpoint import Endpoint
from speclab.engines.mock import MockServer, Script
from speclab.errors import UserError
from speclab.lab import Phases, Sampling
from speclab.load.closed_loop import CellLog, run_cell
from speclab.prompts.base import Prompt, PromptSet

PHASES = Phases(length_s=3.0, drop_first_s=0.8, drop_last_s=0.2)
EVENTS_PER_ANSWER = 128
_PROMPTS = PromptSet(
    measured=(Prompt("selftest", "selftest/measured", "Say nothing."),),
    warm_up=(Prompt("selftest", "selftest/warm-up", "Say something."),),
)


class Carried(Frozen):
    """The events that a client took in."""

    concurrency: int
    """Requests in flight."""
    events_per_s: float
    """Stream events of all requests together, each of them one step of one row, 1/s."""

    @property
    def shortest_step_ms(self) -> float:
        """Step time at this concurrency below which the client falls behind, ms."""
        return 1000 * self.concurrency / self.events_per_s


def carried(concurrency: int, phases: Phases = PHASES) -> Carried:
    """Return what this client carries at a concurrency, after a few seconds of trying.

    Parameters
    ----------
    concurrency : int
        Requests in flight.
    phases : Phases
        Length of the trial and what is dropped at its ends.

    Raises
    ------
    UserError
        The null server did not start, or a request to it failed.
    """
    command = [sys.executable, "-m", "speclab.load.selftest"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            url = server.stdout.readline().strip()
            if not url:
                raise UserError("the null server of the self-test did not start", "try --no-selftest")
            log = asyncio.run(_load(url, concurrency, phases))
        finally:
            server.stdin.close()  # it serves until its input ends
    failed = next((answer.error for answer in log.answers if answer.error), log.failure)
    if failed:
        raise UserError(f"the self-test's load failed: {failed}", "try --no-selftest")
    return Carried(concurrency=concurrency, events_per_s=_rate(log, phases))


async def _load(url: str, concurrency: int, phases: Phases) -> CellLog:
    async with Endpoint(url, "mock", "null server") as endpoint:
        return await run_cell(endpoint, _PROMPTS, concurrency, phases, Sampling(max_tokens=EVENTS_PER_ANSWER))


def _rate(log: CellLog, phases: Phases) -> float:
    opens_s, closes_s = phases.window_s
    after_s = np.concatenate([np.asarray(answer.event_s, dtype=np.float64) for answer in log.answers]) - log.start_s
    return float(np.count_nonzero((after_s >= opens_s) & (after_s < closes_s))) / (closes_s - opens_s)


async def _serve() -> None:
    async with MockServer(Script(tokens_per_event=(1,) * EVENTS_PER_ANSWER)) as server:
        print(server.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve())
