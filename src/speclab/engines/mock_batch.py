"""The mock's engine: rows that share their steps, on a schedule that does not slip.

A step begins where the one before was due, not where it was noticed, so that a late timer delays one event and not all
that follow. How late the engine was is kept (`RunningBatch.sent`): a client is only judged by a stub that kept time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from speclab.config import Frozen
from speclab.engines.mock_rows import Row
from speclab.engines.mock_script import Script, seconds

STEPS_KEPT = 200_000


class Step(NamedTuple):
    """One step that was taken."""

    due_s: float
    """Loop time at which its events were to be sent, s."""
    first_s: float
    """Loop time at which the first of them was."""
    last_s: float
    """Loop time at which the last of them was."""
    events: int
    tokens: int
    follows: bool
    """Whether the one before ended where it began: nothing was idle in between."""


class Sent(Frozen):
    """What the engine sent in some time, and how well it kept its schedule."""

    steps: int
    events: int
    tokens: int
    late_p99_ms: float
    """Lateness of a step's first event against the schedule, ms."""
    gap_p50_ms: float | None
    gap_p99_ms: float | None
    """Time between the last events of two steps, as they were sent, ms: the gaps of the row that is written last. None
    before the second step."""
    gap_mean_ms: float | None


@dataclass(slots=True)
class Counters:
    """Counters of one engine, from its start."""

    steps: int = 0
    tokens: int = 0
    prompt_tokens: int = 0
    preemptions: int = 0
    draft_tokens: int = 0
    accepted: dict[int, int] = field(default_factory=dict)
    """Drafts by the number of their tokens that were accepted."""


class RunningBatch:
    """The rows that are being served, and the loop that serves them.

    Parameters
    ----------
    script : Script
        How long steps take and what they give.
    """

    def __init__(self, script: Script):
        self._script = script
        self._step_ms, self._acceptance = script.step_ms, script.acceptance
        self._changes = deque(sorted(script.changes, key=lambda change: change.after_s))
        self.counters = [Counters() for _ in range(script.engines)]
        self.running: dict[Row, None] = {}
        self.waiting: deque[Row] = deque()
        self.hanging: set[Row] = set()
        """Rows that get no step any more, though the server takes them to be running."""
        self.first_s: float | None = None
        """Loop time of the first completion, s."""
        self._log: deque[Step] = deque(maxlen=STEPS_KEPT)
        self._steps = 0
        self._batch: dict[Row, None] = {}
        self._reads_prompts = False
        self._began_s = self._due_s = 0.0
        self._follows = False
        self._timer: asyncio.TimerHandle | None = None

    def add(self, row: Row) -> None:
        """Take in a row: it joins the next step that has room for it."""
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        if self.first_s is None:
            self.first_s = now_s
        if self._acceptance is not self._script.acceptance:
            row.serve(self._acceptance)
        self.waiting.append(row)
        if self._timer is None:  # requests that come at the same moment share their first step
            self._follows = False
            self._timer = loop.call_at(now_s, self._begin, now_s)

    def drop(self, row: Row) -> None:
        """Take out a row: the step that is under way becomes shorter."""
        self.hanging.discard(row)
        self.running.pop(row, None)
        if row in self.waiting:
            self.waiting.remove(row)
        if row in self._batch:
            del self._batch[row]
            self._wait()

    def hang(self, row: Row) -> None:
        """Give a row no further step."""
        self.drop(row)
        self.hanging.add(row)

    def stop(self) -> None:
        """Take no more steps."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def sent(self, from_s: float = -np.inf, to_s: float = np.inf) -> Sent:
        """Return what was sent between two loop times."""
        steps = [step for step in self._log if from_s <= step.due_s < to_s]
        gaps_ms = 1000 * np.diff([step.last_s for step in steps])[[step.follows for step in steps[1:]]]
        p50, p99 = np.percentile(gaps_ms, [50, 99]).tolist() if len(gaps_ms) else (None, None)
        return Sent(
            steps=len(steps),
            events=sum(step.events for step in steps),
            tokens=sum(step.tokens for step in steps),
            late_p99_ms=float(np.percentile([1000 * (step.first_s - step.due_s) for step in steps] or [0.0], 99)),
            gap_p50_ms=p50,
            gap_p99_ms=p99,
            gap_mean_ms=float(gaps_ms.mean()) if len(gaps_ms) else None,
        )

    def _begin(self, at_s: float) -> None:
        self._change(at_s)
        most = self._script.max_running
        while self.waiting and (most is None or len(self.running) < most):
            self.running[self.waiting.popleft()] = None
        self._batch = dict(self.running)
        self._reads_prompts = any(row.is_fresh for row in self._batch)
        self._began_s = at_s
        self._wait()

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._batch:
            if self.waiting or self.running:
                self._begin(asyncio.get_running_loop().time())
            return
        length_s = seconds(self._step_ms, len(self._batch))
        if self._reads_prompts:
            length_s += self._script.prefill_ms / 1000
        self._due_s = self._began_s + length_s
        self._timer = asyncio.get_running_loop().call_at(self._due_s, self._end)

    def _end(self) -> None:
        """Give each row of the batch its tokens, and begin the next step."""
        loop = asyncio.get_running_loop()
        due_s, first_s, tokens = self._due_s, loop.time(), 0
        batch, self._batch, self._timer = self._batch, {}, None
        self._steps += 1
        if self._script.preempt_every and self._steps % self._script.preempt_every == 0:
            self._preempt(batch)
        for engine in {row.engine for row in batch}:
            self.counters[engine].steps += 1
        for row in batch:
            counters = self.counters[row.engine]
            if row.is_fresh:
                counters.prompt_tokens += self._script.prompt_tokens
            row.step()
            tokens += row.tokens
            counters.tokens += row.tokens
            if row.drafted is not None:
                accepted = row.tokens - 1
                counters.draft_tokens += row.drafted
                counters.accepted[accepted] = counters.accepted.get(accepted, 0) + 1
            if not row.left:
                del self.running[row]
            row.write(row)
        last_s = loop.time()
        self._log.append(Step(due_s, first_s, last_s, len(batch), tokens, self._follows))
        self._follows = True
        length_s = due_s - self._began_s
        keeps_up = length_s > 0 and last_s - due_s < length_s
        self._begin(due_s if keeps_up else last_s)

    def _preempt(self, batch: dict[Row, None]) -> None:
        row, _ = batch.popitem()
        del self.running[row]
        row.is_fresh = True
        self.waiting.appendleft(row)
        self.counters[row.engine].preemptions += 1

    def _change(self, now_s: float) -> None:
        while self._changes and self.first_s is not None and now_s - self.first_s >= self._changes[0].after_s:
            change = self._changes.popleft()
            if change.step_ms is not None:
                self._step_ms = change.step_ms
            if change.acceptance is not None:
                self._acceptance = change.acceptance
                for row in (*self.running, *self.waiting):
                    row.serve(self._acceptance)
