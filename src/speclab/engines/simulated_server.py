"""A server that batches continuously, in virtual time: who is in which step, how long the step takes, what comes of it.

It schedules as vLLM V1 does: a step holds every running row (with its drafts) and, as far as the token budget goes,
waiting prompts, the last of them possibly in part; the next step starts at once, so a request that arrives meanwhile
waits for the one after. Not modelled: the client's and the network's time, preemption, prefix caching, padding to
CUDA-graph sizes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np

from speclab.engines.base import Answer, EngineFailure, EngineIdentity, Reading
from speclab.engines.simulated_answers import DRAFTED, FIRST_POSITION, GENERATED, PROMPT, ROWS, SimulatedAnswer, Writer
from speclab.lab import Sampling
from speclab.prompts.base import PromptSet
from speclab.roofline.step import NO_PROMPTS, Prompts, Rows, StepModel


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one step and one row may hold.

    Attributes
    ----------
    max_num_seqs : int
        Rows in a step.
    max_num_batched_tokens : int
        Positions in a step: one for each row, its drafts, and the prompts' tokens.
    max_model_len : int, optional
        Prompt and answer together; None for no limit.
    """

    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int | None = None


@dataclass(slots=True, eq=False)
class _Request:
    answer: Answer
    prompt_tokens: int
    written: SimulatedAnswer
    done: asyncio.Future[None]
    prefilled: int = 0
    first_step: int | None = None
    """The step that ends its prefill and gives its first event; event i comes at the end of step first_step + i."""


class SimulatedServer:
    """One arm's engine; see `speclab.engines.base.Engine`.

    Each request's whole future is known when it starts, and is added to the totals of the steps to come; a step then
    only reads its totals, so it costs the same with one row as with hundreds. Taking a request away subtracts what is
    left.
    """

    def __init__(
        self,
        identity: EngineIdentity,
        model: StepModel,
        writer: Writer,
        prompt_tokens: dict[str, int],
        limits: Limits,
    ) -> None:
        self._identity = identity
        self._model = model
        self._writer = writer
        self._prompt_tokens = prompt_tokens
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.Handle | None = None
        self._waiting: deque[_Request] = deque()
        self._running = 0
        self._step = 0  # index of the step under way; as many are finished
        self._ends_s = np.zeros(1024)
        self._totals = np.zeros((1024, FIRST_POSITION + model.k), dtype=np.int64)
        self._finished = np.zeros(FIRST_POSITION + model.k, dtype=np.int64)
        self._ending: dict[int, list[_Request]] = {}
        self._step_ends_s = 0.0

    @property
    def identity(self) -> EngineIdentity:
        """What serves."""
        return self._identity

    def load(self, prompts: PromptSet, sampling: Sampling) -> AbstractContextManager[None]:
        """Return a context that does nothing: virtual time stands still while anything is worked out."""
        return nullcontext()

    async def send(self, answer: Answer, sampling: Sampling) -> None:
        """Serve one request; see `speclab.engines.base.Engine.send`."""
        request = self._request(answer, sampling)
        self._waiting.append(request)
        if self._timer is None:
            # not at once: requests that are sent at the same instant share the first step
            self._timer = self._loop.call_soon(self._wake)
        try:
            await request.done
        except asyncio.CancelledError:
            if answer.end_s is None:
                self._abort(request)
            raise

    async def read(self) -> Reading:
        """Return the counters up to the last finished step; see `speclab.engines.base.Engine.read`."""
        k = self._model.k
        finished = self._finished.tolist()
        accepted = tuple(map(float, finished[FIRST_POSITION:]))
        return Reading(
            at_s=self._loop.time(),
            running=self._running,
            waiting=len(self._waiting),
            steps=self._step,
            prompt_tokens=finished[PROMPT],
            generation_tokens=finished[GENERATED],
            preemptions=0,
            prefix_cache_queries=0,
            prefix_cache_hits=0,
            # a server without speculation offers none of these
            drafts=finished[DRAFTED] if k else None,
            draft_tokens=k * finished[DRAFTED] if k else None,
            accepted_tokens=sum(accepted) if k else None,
            accepted_by_position=accepted if k else None,
        )

    def close(self) -> None:
        """Stop stepping."""
        if self._timer is not None:
            self._timer.cancel()

    def _request(self, answer: Answer, sampling: Sampling) -> _Request:
        prompt_id = answer.prompt.id
        if prompt_id not in self._prompt_tokens:
            raise EngineFailure("bad configuration", f"no stored token count for prompt {prompt_id!r}")
        prompt_tokens = self._prompt_tokens[prompt_id]
        limit = self._limits.max_model_len
        if limit is not None and prompt_tokens >= limit:
            reason = f"prompt {prompt_id!r} has {prompt_tokens} tokens, max-model-len is {limit}"
            raise EngineFailure("bad configuration", reason)
        room = None if limit is None else limit - prompt_tokens
        written = self._writer.write(prompt_id, prompt_tokens, sampling, room)
        return _Request(answer, prompt_tokens, written, self._loop.create_future())

    def _wake(self) -> None:
        self._begin_step(max(self._loop.time(), self._step_ends_s))

    def _begin_step(self, now_s: float) -> None:
        rows = Rows(*self._totals[self._step, ROWS:GENERATED].tolist())
        prompts = self._admit(self._limits.max_num_batched_tokens - rows.count - self._model.k * rows.drafted)
        if not rows.count and not prompts.tokens:
            self._timer = None  # until the next request
            return
        self._step_ends_s = now_s + self._model.seconds(rows, prompts)
        self._timer = self._loop.call_at(self._step_ends_s, self._end_step)

    def _admit(self, budget: int) -> Prompts:
        """Take waiting prompts into this step, in order, the last in part where the budget ends."""
        prompts = NO_PROMPTS
        while budget > 0 and self._waiting:
            request = self._waiting[0]
            if not request.prefilled:
                if self._running == self._limits.max_num_seqs:
                    break
                self._running += 1
            piece = min(budget, request.prompt_tokens - request.prefilled)
            prompts = prompts.plus(piece, request.prefilled)
            budget -= piece
            request.prefilled += piece
            if request.prefilled == request.prompt_tokens:
                self._waiting.popleft()
                self._enter(request)
        return prompts

    def _enter(self, request: _Request) -> None:
        """Add what the request will do to the totals of this step and the next ones."""
        request.first_step = self._step
        until = self._step + len(request.written.event_tokens)
        self._reserve(until + 1)
        self._totals[self._step : until] += request.written.steps
        self._ending.setdefault(until - 1, []).append(request)

    def _end_step(self) -> None:
        step = self._step
        self._reserve(step + 2)
        self._ends_s[step] = self._step_ends_s
        self._finished += self._totals[step]
        self._step += 1
        for request in self._ending.pop(step, ()):
            self._running -= 1
            self._deliver(request)
            request.answer.output_tokens = int(request.written.event_tokens.sum())
            request.answer.finish_reason = request.written.finish_reason
            request.answer.end_s = self._step_ends_s
            if not request.done.done():
                request.done.set_result(None)
        self._begin_step(self._step_ends_s)

    def _abort(self, request: _Request) -> None:
        """Take a request out; the step under way still takes as long as planned, but this row's part is lost."""
        if request.prefilled:
            self._running -= 1
        if request.first_step is None:
            self._waiting.remove(request)
            return
        self._deliver(request)
        steps = request.written.steps[self._step - request.first_step :]
        self._totals[self._step : self._step + len(steps)] -= steps
        self._ending[self._step + len(steps) - 1].remove(request)

    def _deliver(self, request: _Request) -> None:
        """Hand over the events of the finished steps."""
        assert request.first_step is not None
        until = min(self._step, request.first_step + len(request.written.event_tokens))
        request.answer.event_s = self._ends_s[request.first_step : until].copy()
        request.answer.event_tokens = request.written.event_tokens[: until - request.first_step]
        if until > request.first_step:
            request.answer.prompt_tokens = request.prompt_tokens

    def _reserve(self, steps: int) -> None:
        """Make room for the totals of so many steps."""
        more = steps - len(self._totals)
        if more > 0:
            more = max(more, len(self._totals))
            self._totals = np.concatenate([self._totals, np.zeros((more, self._totals.shape[1]), dtype=np.int64)])
            self._ends_s = np.concatenate([self._ends_s, np.zeros(more)])
