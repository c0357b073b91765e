"""The fleet as plainly as it can be written: one token at a time, nothing planned, every pass priced by `StepModel`.

The simulator must give the very same timestamps; `benchmarks/model_sweep.py` times it against this.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from speclab.replications.chapter10.fleet.fleet import AssumedSpeculation, Fleet
from speclab.replications.chapter10.fleet.workload import Requests
from speclab.roofline.step import NO_PROMPTS, Rows, StepModel

MASK = 0xFFFFFFFF


def mulberry32(state: int) -> Iterator[float]:
    """Yield the numbers of one stream, in 32-bit arithmetic as it is usually written down."""
    while True:
        state = (state + 0x6D2B79F5) & MASK
        t = ((state ^ (state >> 15)) * (state | 1)) & MASK
        t ^= (t + (((t ^ (t >> 7)) * (t | 61)) & MASK)) & MASK
        yield ((t ^ (t >> 14)) & MASK) / 2**32


@dataclass
class Row:
    number: int
    prompt: int
    output: int
    turn: int
    arrival_s: float = math.nan
    token_s: list[float] = field(default_factory=list)
    stream: Iterator[float] = field(default_factory=lambda: iter(()))
    draw: tuple[bool, int] | None = None

    @property
    def first_s(self) -> float:
        return self.token_s[0] if self.token_s else math.nan

    @property
    def finish_s(self) -> float:
        return self.token_s[-1] if len(self.token_s) == self.output else math.nan


def drawn(speculation: AssumedSpeculation, stream: Iterator[float]) -> tuple[bool, int]:
    """Return whether one pass of one row has a draft, and how many of its tokens the target agrees with."""
    if speculation.alpha is not None:
        accepted = 0
        while accepted < speculation.k and next(stream) < speculation.alpha:
            accepted += 1
        return True, accepted
    number = next(stream)
    limits = [speculation.draft_rate * share for share in speculation.marginal or ()]
    return number < speculation.draft_rate, sum(number < limit for limit in limits)


@dataclass
class Instance:
    model: StepModel
    fleet: Fleet
    room: int
    queue: list[Row] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    reading: list[Row] = field(default_factory=list)
    until_s: float = math.inf
    energy_j: float = 0.0
    decode_end_s: list[float] = field(default_factory=list)

    def begin(self, now_s: float) -> None:
        self.reading = []
        while self.queue and len(self.rows) + len(self.reading) < self.fleet.max_rows:
            row = self.queue[0]
            tokens = sum(each.prompt for each in self.reading) + row.prompt
            if self.reading and tokens > self.fleet.max_prompt_tokens:
                break
            if row.prompt + row.output > self.room:
                break
            self.room -= row.prompt + row.output
            self.reading.append(self.queue.pop(0))
        if self.reading:
            prompts = NO_PROMPTS
            for row in self.reading:
                prompts = prompts.plus(row.prompt)
            step = self.model.step(Rows(), prompts)
        elif self.rows:
            contexts = [row.prompt + len(row.token_s) for row in self.rows]
            drafted = [context for row, context in zip(self.rows, contexts, strict=True) if self._drafts(row)]
            step = self.model.step(Rows(len(contexts), sum(contexts), len(drafted), sum(drafted)))
        else:
            self.until_s = math.inf
            return
        self.energy_j += step.energy_j + step.link_j
        self.until_s = now_s + step.seconds

    def _speculates(self) -> bool:
        drafts = self.fleet.speculation
        return drafts is not None and (drafts.below_rows is None or len(self.rows) < drafts.below_rows)

    def _drafts(self, row: Row) -> bool:
        if not self._speculates() or self.fleet.speculation is None:
            return False
        if row.draw is None:
            row.draw = drawn(self.fleet.speculation, row.stream)
        return row.draw[0]

    def end(self) -> list[Row]:
        """Hand out the pass's tokens; return the rows that are finished by it."""
        written = self.reading or self.rows
        if not self.reading:
            self.decode_end_s.append(self.until_s)
        for row in written:
            tokens = 1
            if not self.reading and self._speculates() and row.draw is not None:
                tokens += row.draw[1]
                row.draw = None
            for _ in range(tokens):
                if len(row.token_s) < row.output:
                    row.token_s.append(self.until_s)
        self.rows = [row for row in self.rows + self.reading if len(row.token_s) < row.output]
        done = [row for row in written if len(row.token_s) == row.output]
        self.room += sum(row.prompt + row.output for row in done)
        self.reading = []
        return done


def serve(fleet: Fleet, requests: Requests) -> tuple[list[Row], list[Instance]]:
    """Return every request with the time of each of its tokens, and the instances."""
    instances = [Instance(fleet.step_model, fleet, fleet.kv_room) for _ in range(fleet.instances)]
    seed = 0 if fleet.speculation is None else fleet.speculation.seed
    everything = [
        Row(i, int(requests.prompt[i]), int(requests.output[i]), i % requests.turns, float(requests.arrival_s[i]),
            stream=mulberry32((seed + i * 2654435761) & MASK))
        for i in range(len(requests))
    ]  # fmt: skip
    coming = [row for row in everything if row.turn == 0]
    while True:
        instance = min(instances, key=lambda each: each.until_s)
        row = min(coming, key=lambda each: (each.arrival_s, each.number), default=None)
        if row is not None and row.arrival_s <= instance.until_s:
            coming.remove(row)
            if row.prompt + row.output <= fleet.kv_room:
                chosen = min(instances, key=lambda each: len(each.queue) + len(each.rows))
                chosen.queue.append(row)
                if chosen.until_s == math.inf:
                    chosen.begin(row.arrival_s)
            continue
        if instance.until_s == math.inf:
            return everything, instances
        now_s = instance.until_s
        for row in instance.end():
            if row.turn + 1 < requests.turns:
                after = everything[row.number + 1]
                after.arrival_s = now_s + float(requests.think_s[after.number])
                coming.append(after)
        instance.begin(now_s)
