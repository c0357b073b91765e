"""Serve requests in virtual time: a router, and instances that each read prompts or decode, one pass after another."""

from __future__ import annotations

import heapq
import math
from collections import deque

import numpy as np

from speclab.model.serving.draws import Bursts
from speclab.model.serving.fleet import Fleet
from speclab.model.serving.pricing import Price, Pricing
from speclab.model.serving.rows import CutOffRows, DecodingRows, PlannedRows
from speclab.model.serving.served import Passes, Served
from speclab.model.serving.workload import Requests

NEVER = math.inf


class _Instance:
    """One instance: requests that wait, prompts that are being read, rows that decode.

    Whole prompts are read first come, first served, as soon as any can be admitted; decoding waits meanwhile. A request
    is admitted with room reserved for all that it will be.
    """

    def __init__(self, fleet: Fleet, requests: Requests, rows: DecodingRows, pricing: Pricing):
        self.rows, self.waiting = rows, deque[int]()
        self.busy_until_s = NEVER
        self.reading: list[int] = []
        self.passes = Passes()
        self._fleet, self._pricing = fleet, pricing
        self._prompt, self._total = requests.prompt.tolist(), (requests.prompt + requests.output).tolist()
        self._room = fleet.kv_room

    @property
    def load(self) -> int:
        """What the router goes by: prompts that are being read are not counted, as in the source."""
        return len(self.waiting) + self.rows.count

    def release(self, request: int) -> None:
        """Give back the room that a finished request held."""
        self._room += self._total[request]

    def start(self, now_s: float) -> None:
        """Begin the next pass, if there is anything to do."""
        self.reading = self._admit() if self.waiting else []
        if self.reading:
            price = self._prefill()
        elif self.rows.count:
            work = self.rows.work()
            price = self._pricing.decode(*work)
            self.passes.rows.append(work.count)
            self.passes.drafted.append(work.drafted)
        else:
            self.busy_until_s = NEVER
            return
        self.busy_until_s = now_s + price.seconds
        self.passes.note(bool(self.reading), now_s, self.busy_until_s, price)

    def _admit(self) -> list[int]:
        batch: list[int] = []
        tokens = 0
        places = self._fleet.max_rows - self.rows.count
        while self.waiting and len(batch) < places:
            request = self.waiting[0]
            tokens += self._prompt[request]
            if (batch and tokens > self._fleet.max_prompt_tokens) or self._total[request] > self._room:
                break
            self._room -= self._total[request]
            batch.append(self.waiting.popleft())
        return batch

    def _prefill(self) -> Price:
        prompts = [self._prompt[request] for request in self.reading]
        return self._pricing.prefill(sum(prompts), sum(prompt * (prompt + 1) for prompt in prompts) / 2)


def serve(fleet: Fleet, requests: Requests, bursts: list[Bursts] | None = None) -> Served:
    """Return what became of each request, and every pass.

    Parameters
    ----------
    fleet : Fleet
        What serves.
    requests : Requests
        What is asked, and when.
    bursts : list of Bursts, optional
        The draws of each request; made here where not given.

    Returns
    -------
    Served
    """
    decoded = (requests.output - 1).tolist()
    if bursts is None:
        bursts = [fleet.bursts(request, tokens) for request, tokens in enumerate(decoded)]
    pricing = Pricing(fleet.cost)
    most = sum(len(each.kept) for each in bursts)
    cut_off = None if fleet.speculation is None else fleet.speculation.below_rows
    instances = [
        _Instance(
            fleet,
            requests,
            PlannedRows(most, fleet.speculation is not None) if cut_off is None else CutOffRows(cut_off),
            pricing,
        )
        for _ in range(fleet.instances)
    ]
    total, prompt = (requests.prompt + requests.output).tolist(), requests.prompt.tolist()
    think, turns = requests.think_s.tolist(), requests.turns
    count = len(requests)
    arrival, first, finish = [math.nan] * count, [math.nan] * count, [math.nan] * count
    first_pass, passes_of, where = [0] * count, [0] * count, [-1] * count
    coming = [(at, request) for request, at in enumerate(requests.arrival_s.tolist()) if at == at]
    heapq.heapify(coming)

    def finished(request: int, at: float) -> None:
        finish[request] = at
        instances[where[request]].release(request)
        if (request + 1) % turns:
            heapq.heappush(coming, (at + think[request + 1], request + 1))

    while True:
        at = min(instance.busy_until_s for instance in instances)
        if coming and coming[0][0] <= at:
            at, request = heapq.heappop(coming)
            arrival[request] = at
            if total[request] > fleet.kv_room:
                continue
            number = min(range(len(instances)), key=lambda i: (instances[i].load, i))
            where[request] = number
            instance = instances[number]
            instance.waiting.append(request)
            if instance.busy_until_s == NEVER:
                instance.start(at)
            continue
        if at == NEVER:
            break
        instance = next(each for each in instances if each.busy_until_s == at)
        if instance.reading:
            for request in instance.reading:
                first[request] = at
                if decoded[request]:
                    first_pass[request] = len(instance.passes.end_s)
                    instance.rows.join(request, prompt[request], bursts[request])
                else:
                    finished(request, at)
            instance.reading = []
        else:
            for request, passes in instance.rows.done():
                passes_of[request] = passes
                finished(request, at)
        instance.start(at)
    return Served(
        requests=requests,
        arrival_s=np.array(arrival),
        first_s=np.array(first),
        finish_s=np.array(finish),
        instance=np.array(where),
        first_pass=np.array(first_pass),
        passes=np.array(passes_of),
        by_instance=tuple(instance.passes for instance in instances),
    )
