"""One instance of a fleet: requests that wait, prompts that are being read, rows that decode."""

from __future__ import annotations

import math
from collections import deque

from speclab.replications.chapter10.fleet.fleet import Fleet
from speclab.replications.chapter10.fleet.rows import DecodingRows
from speclab.replications.chapter10.fleet.served import Passes
from speclab.replications.chapter10.fleet.step_time import PrecomputedSteps
from speclab.replications.chapter10.fleet.workload import Requests

NEVER = math.inf


class Instance:
    """One instance: a serial loop of passes.

    Whole prompts are read first come, first served, as soon as any can be admitted; decoding waits meanwhile. A request
    is admitted with room reserved for its full length.

    Parameters
    ----------
    fleet : Fleet
        The fleet that it belongs to.
    requests : Requests
        Requests that may be sent to it.
    rows : DecodingRows
        Keeps its rows; empty.
    steps : PrecomputedSteps
        What its passes cost.
    """

    def __init__(self, fleet: Fleet, requests: Requests, rows: DecodingRows, steps: PrecomputedSteps):
        self.rows, self.waiting = rows, deque[int]()
        self.reading: list[int] = []
        """Requests whose prompts the pass under way reads; empty while it decodes."""
        self.busy_until_s = NEVER
        self.passes = Passes()
        self._steps, self._room = steps, fleet.kv_room
        self._max_rows, self._max_prompt_tokens = fleet.max_rows, fleet.max_prompt_tokens
        self._prompt, self._total = requests.prompt.tolist(), (requests.prompt + requests.output).tolist()

    @property
    def load(self) -> int:
        """What the router balances by; prompts that are being read are not counted, as in the source."""
        return len(self.waiting) + self.rows.count

    def release(self, request: int) -> None:
        """Give back the room that a finished request held."""
        self._room += self._total[request]

    def start(self, now_s: float) -> None:
        """Begin the next pass, if there is anything to do."""
        self.reading = self._admit() if self.waiting else []
        if self.reading:
            prompts = [self._prompt[request] for request in self.reading]
            step = self._steps.prefill(sum(prompts), sum(prompt * (prompt + 1) for prompt in prompts) / 2)
            self.busy_until_s = now_s + step.seconds
            self.passes.note_prefill(now_s, self.busy_until_s, len(prompts), step)
        elif self.rows.count:
            rows = self.rows.next_pass()
            step = self._steps.decode(*rows)
            self.busy_until_s = now_s + step.seconds
            self.passes.note_decode(now_s, self.busy_until_s, rows.rows, step)
        else:
            self.busy_until_s = NEVER

    def _admit(self) -> list[int]:
        batch: list[int] = []
        tokens = 0
        places = self._max_rows - self.rows.count
        while self.waiting and len(batch) < places:
            request = self.waiting[0]
            tokens += self._prompt[request]
            if (batch and tokens > self._max_prompt_tokens) or self._total[request] > self._room:
                break
            self._room -= self._total[request]
            batch.append(self.waiting.popleft())
        return batch
