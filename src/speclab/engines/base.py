"""The seam between the load and whatever serves tokens.

The load hands an engine an `Answer` to fill and waits; the engine appends to it as tokens arrive, so an answer that is
cut off (the cell ends, the server dies) keeps what it had. Times are those of the running event loop (`asyncio` loop
time, seconds): real for a server, virtual for the simulator, and the load cannot tell which.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from speclab.config import Frozen
from speclab.lab import EngineName, Sampling
from speclab.prompts.base import Prompt, PromptSet

NOT_STARTED = "not started"
"""The version of a server that did not come up: no request could ask it for its own."""

UNTOLD = 0
"""Tokens of an event whose server says only how many a whole answer holds. No event that is counted holds none."""

FailureClass = Literal["will not start", "out of memory", "bad configuration", "died mid-run", "hung", "client error"]


class EngineIdentity(Frozen):
    """What served the tokens."""

    engine: EngineName
    version: str
    device: str
    """Slug of the device, as in the record's path (``h100-sxm``, ``xeon-2-cores``)."""
    device_name: str | None = None
    """The device as its driver names it (``NVIDIA H100 80GB HBM3``), where a server was started on it."""

    @property
    def source(self) -> str:
        """The badge that every number from this engine carries."""
        if self.engine == "simulated":
            return f"simulated ({self.device})"
        return f"measured ({self.version}, {self.device_name or self.device})"


class Reading(Frozen):
    """The server's counters and gauges at one instant, summed over its engines; None is "not offered", never 0.

    Counters run from the server's start; a difference of two readings is what happened between them.
    """

    at_s: float
    running: float | None = None
    waiting: float | None = None
    steps: float | None = None
    prompt_tokens: float | None = None
    generation_tokens: float | None = None
    preemptions: float | None = None
    prefix_cache_queries: float | None = None
    prefix_cache_hits: float | None = None
    drafts: float | None = None
    """Row-steps that had a draft. Row-steps without one are not counted here."""
    draft_tokens: float | None = None
    accepted_tokens: float | None = None
    accepted_by_position: tuple[float, ...] | None = None


@dataclass(slots=True)
class Answer:
    """What one request has given so far.

    One event is one delivery of tokens; on a server that streams each step at once it is one step of this row, and
    holds 1..k+1 tokens.
    """

    prompt: Prompt
    start_s: float
    event_s: Sequence[float] | NDArray[np.float64] = field(default_factory=list)
    """Loop time at which each event arrived, s."""
    event_tokens: Sequence[int] | NDArray[np.int16] = field(default_factory=list)
    """Tokens that each event delivered, by the server's own running usage; all `UNTOLD` where it keeps none."""
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    """The server's final usage; None until it has said so."""
    end_s: float | None = None
    finish_reason: str | None = None
    error: str | None = None
    text: str | None = None
    retry_after_s: float | None = None
    """How long a server that refused the request asks to wait, s."""
    reads: int = 0
    merged_reads: int = 0
    """Reads from the network that brought events, and those that brought more than one: their events share a time."""
    unread: Callable[[], None] | None = None
    """Reads what came, where an engine left that for later; see `settle`."""

    def settle(self) -> None:
        """Fill in what an engine left unread while time was being taken."""
        if self.unread is not None:
            unread, self.unread = self.unread, None
            unread()


class Engine(Protocol):
    """One arm being served."""

    @property
    def identity(self) -> EngineIdentity:
        """What serves: engine, version, device."""
        ...

    async def send(self, answer: Answer, sampling: Sampling) -> None:
        """Send `answer.prompt` and fill `answer` until the server ends it.

        A request that fails says so in ``answer.error`` and returns; `EngineFailure` is for a server that is gone.
        Cancelling the call aborts the request and leaves in `answer` what had arrived. Within `load` an answer may be
        left to be settled (`Answer.settle`).
        """
        ...

    def load(self, prompts: PromptSet, sampling: Sampling) -> AbstractContextManager[None]:
        """Return a context in which these prompts are timed: what takes time is done before it and after it."""
        ...

    async def read(self) -> Reading:
        """Read the server's counters and gauges now; what it does not offer is None, never 0."""
        ...


class EngineFailure(Exception):  # noqa: N818 - a finding about a server, recorded as data
    """The server of an arm cannot serve: recorded as the failure of a cell or of the arm, never a traceback.

    Parameters
    ----------
    kind : FailureClass
        Which of the known ways of failing.
    reason : str
        One line for the reader.
    log_tail : str
        The end of the server's own log, where it has one.
    """

    def __init__(self, kind: FailureClass, reason: str, log_tail: str = ""):
        self.kind, self.reason, self.log_tail = kind, reason, log_tail
        super().__init__(f"{kind}: {reason}")


@dataclass(frozen=True, slots=True)
class Opening:
    """How to serve one arm: an event loop to run in, and the arm's engine as an async context."""

    loop_factory: Callable[[], asyncio.AbstractEventLoop]
    engine: Callable[[], AbstractAsyncContextManager[Engine]]
    command: list[str] | None = None
    """The server's command line, where this project starts it; part of the provenance."""
