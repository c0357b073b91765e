"""A mock whose rows advance together, one step at a time, as an engine's batch does; its step times are scripted.

With it a client, a lab and a book can be tried on a machine without a GPU: what comes out is as long, as often
accepted and as slow as the script says, whatever the machine.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import Any, Self

import numpy as np
from pydantic import Field

from speclab.config import Frozen
from speclab.engines.mock import MockServer, Script
from speclab.lab import Probability

TICK_S = 0.005
"""How often a step that is being waited for looks for clients that left: they make it shorter."""

_GOLDEN, _SILVER = (math.sqrt(5) - 1) / 2, math.sqrt(2) - 1
"""Multiples of these, modulo 1, fill the unit interval evenly: shares come out right after a few draws."""


class Acceptance(Frozen):
    """How the draft tokens of some prompts fare."""

    prompt_has: str = ""
    """Part of the text of the prompts that this is for; the first that fits counts."""
    rates: tuple[Probability, ...] = ()
    """Marginal acceptance by draft position; its length is k."""
    draft_rate: Probability = 1.0
    """Share of row-steps that have a draft."""


class Steps(Frozen):
    """How the server serves one arm.

    Steps between two scripted batch sizes take a time on the line between them; beyond the last one the last line goes
    on.
    """

    step_ms: tuple[tuple[int, float], ...] = Field(min_length=2)
    """Rows in flight, and how long their step takes, ms; rising."""
    acceptance: tuple[Acceptance, ...] = (Acceptance(),)
    answer_tokens: tuple[int, int] = (4, 24)
    """The shortest and the longest answer; each prompt has its own length."""

    @property
    def k(self) -> int | None:
        """Draft tokens of a step; None without speculation."""
        return max(len(each.rates) for each in self.acceptance) or None

    def seconds(self, rows: int) -> float:
        """Return how long a step of some rows takes, s."""
        sizes, times = zip(*self.step_ms, strict=True)
        if rows <= sizes[-1]:
            return float(np.interp(rows, sizes, times)) / 1000
        slope = (times[-1] - times[-2]) / (sizes[-1] - sizes[-2])
        return float(times[-1] + slope * (rows - sizes[-1])) / 1000


class SteppingServer(MockServer):
    """The mock with a batch: a row that arrives joins the next step, and each step gives every row its tokens.

    Parameters
    ----------
    steps : Steps
        How long steps take and what they give.
    model : str
        The model it says it serves.
    port : int
        Where it listens; 0 for any free port.
    """

    def __init__(self, steps: Steps, model: str, port: int = 0):
        super().__init__(Script(model=model, k=steps.k), port)
        self._steps = steps
        self._rows: set[_BatchRow] = set()
        self._arrived = asyncio.Event()
        self._engine: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._engine = asyncio.create_task(self._run())
        return await super().__aenter__()

    async def stop(self) -> None:
        """Close the port and every connection, and take no more steps."""
        if self._engine is not None:
            self._engine.cancel()
            with suppress(asyncio.CancelledError):
                await self._engine
        await super().stop()

    async def _run(self) -> None:
        while True:
            await self._arrived.wait()
            batch = await self._wait_for_step()
            self._counted["iteration_tokens_total_count"] += bool(batch)
            for row in batch:
                tokens, drafted = row.step()
                self._count(tokens, drafted=drafted)
                row.events.put_nowait(tokens)
                if not row.left:
                    self._rows.discard(row)
            if not self._rows:
                self._arrived.clear()

    async def _wait_for_step(self) -> set[_BatchRow]:
        """Wait as long as a step of the rows takes, and return those whose clients are still there."""
        loop = asyncio.get_running_loop()
        began_s, batch = loop.time(), set(self._rows)
        while True:
            for row in [row for row in batch if row.has_left()]:
                batch.discard(row)
                self._rows.discard(row)
                row.events.put_nowait(None)
            remaining_s = began_s + self._steps.seconds(len(batch)) - loop.time() if batch else 0.0
            if remaining_s <= 0:
                return batch
            await asyncio.sleep(min(remaining_s, TICK_S))

    async def _lines(self, body: dict[str, Any], has_left: Callable[[], bool], *, faulty: bool) -> AsyncIterator[bytes]:
        row, sent = _BatchRow(self._steps, body, has_left), 0
        self._counted["prompt_tokens_total"] += 7
        self._rows.add(row)
        self._arrived.set()
        try:
            while sent < row.wanted:
                tokens = await row.events.get()
                if tokens is None:
                    raise ConnectionResetError
                sent += tokens
                yield self._chunk({"content": "x" * tokens}, "length" if sent == row.wanted else None, sent)
            for line in self._ending(sent):
                yield line
        finally:
            self._rows.discard(row)


class _BatchRow:
    """One answer being written: how many tokens it still has to give, and what its draws are."""

    def __init__(self, steps: Steps, body: dict[str, Any], has_left: Callable[[], bool]):
        text = str(body["messages"][-1]["content"])
        least, most = steps.answer_tokens
        number = sum(text.encode())  # a prompt's own, the same in every arm
        self.wanted = self.left = min(int(body["max_tokens"]), least + number % (most - least + 1))
        self.acceptance = next((each for each in steps.acceptance if each.prompt_has in text), Acceptance())
        self.events: asyncio.Queue[int | None] = asyncio.Queue()
        """The tokens of each step; None when the client has left."""
        self.has_left = has_left
        self._draws = _evenly(number * _GOLDEN, _GOLDEN)
        self._luck = _evenly(number * _SILVER, _SILVER)
        self._is_first = True

    def step(self) -> tuple[int, bool]:
        """Return the tokens of the next step and whether it had a draft; the first reads the prompt and has none."""
        drafted = bool(self.acceptance.rates) and not self._is_first and next(self._luck) < self.acceptance.draft_rate
        self._is_first = False
        draw = next(self._draws) if drafted else 1.0
        tokens = min(self.left, 1 + sum(draw < rate for rate in self.acceptance.rates))
        self.left -= tokens
        return tokens, drafted


def _evenly(start: float, by: float) -> Iterator[float]:
    at = start
    while True:
        at = (at + by) % 1.0
        yield at
