"""Serve requests in virtual time: a router, and instances that each read prompts or decode, one pass after another."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from speclab.replications.chapter10.fleet.draws import Bursts
from speclab.replications.chapter10.fleet.fleet import Fleet
from speclab.replications.chapter10.fleet.instance import NEVER, Instance
from speclab.replications.chapter10.fleet.rows import CutOffRows, DecodingRows, PlannedRows
from speclab.replications.chapter10.fleet.served import Served
from speclab.replications.chapter10.fleet.step_time import PrecomputedSteps
from speclab.replications.chapter10.fleet.workload import Requests


class SLO(NamedTuple):
    """Latency targets of a run; a run that is sure to miss them too often is given up."""

    ttft_s: float
    tpot_s: float
    """Longest time to the first token, and for each token after it, s."""
    unjudged: int
    """Requests, the earliest, that are not judged; nor is what comes after the last session began."""
    most_violations: float
    """Judged requests that may miss it."""


NO_SLO = SLO(math.inf, math.inf, 0, math.inf)

_busy_until_s = attrgetter("busy_until_s")


class SLOViolated(Exception):  # noqa: N818 - an answer, not a mistake
    """A run missed its SLO more often than allowed."""


def serve(
    fleet: Fleet,
    requests: Requests,
    bursts: Sequence[Bursts] | None = None,
    slo: SLO = NO_SLO,
) -> Served:
    """Return what became of each request, and every pass.

    Parameters
    ----------
    fleet : Fleet
        The serving fleet.
    requests : Requests
        The requests and when they arrive.
    bursts : sequence of Bursts, optional
        The draws of each request, or of more; made here by default.
    slo : SLO, optional
        Latency targets; none by default.

    Raises
    ------
    SLOViolated
        The SLO is sure to be missed more often than allowed; the run stopped there.
    """
    if bursts is None:
        bursts = [fleet.bursts(request, output - 1) for request, output in enumerate(requests.output.tolist())]
    return _Run(fleet, requests, bursts, slo).whole()


class _Run:
    """One run; each request's times are kept by its number."""

    def __init__(self, fleet: Fleet, requests: Requests, bursts: Sequence[Bursts], slo: SLO):
        self._requests, self._bursts, self._slo = requests, bursts, slo
        self._prompt, self._decoded = requests.prompt.tolist(), (requests.output - 1).tolist()
        self._think_s = requests.think_s.tolist()
        self._longest, self._total = fleet.kv_room, (requests.prompt + requests.output).tolist()
        count = len(requests)
        self._arrival_s, self._first_s, self._finish_s = ([math.nan] * count for _ in range(3))
        self._instance, self._first_pass, self._passes = [-1] * count, [0] * count, [0] * count
        self._coming = [(at, request) for request, at in enumerate(requests.arrival_s.tolist()) if not math.isnan(at)]
        heapq.heapify(self._coming)
        self._last_session_s = max(self._coming)[0]
        self._arrived = self._violations = 0
        self._judged = [False] * count
        steps = PrecomputedSteps(fleet.step_model)
        self._instances = [
            Instance(fleet, requests, _rows(fleet, bursts[:count]), steps) for _ in range(fleet.instances)
        ]

    def whole(self) -> Served:
        """Run until nothing is left to do."""
        coming, instances = self._coming, self._instances
        while self._violations <= self._slo.most_violations:
            instance = min(instances, key=_busy_until_s)
            if coming and coming[0][0] <= instance.busy_until_s:
                self._arrive(*heapq.heappop(coming))
            elif instance.busy_until_s == NEVER:
                return self._served()
            else:
                self._pass_done(instance, instance.busy_until_s)
        raise SLOViolated

    def _arrive(self, at: float, request: int) -> None:
        self._arrival_s[request] = at
        self._arrived += 1
        self._judged[request] = self._arrived > self._slo.unjudged and at <= self._last_session_s
        if self._total[request] > self._longest:  # no instance can ever hold it
            self._violations += self._judged[request]
            return
        number, instance = min(enumerate(self._instances), key=lambda numbered: numbered[1].load)
        self._instance[request] = number
        instance.waiting.append(request)
        if instance.busy_until_s == NEVER:
            instance.start(at)

    def _pass_done(self, instance: Instance, at: float) -> None:
        for request in instance.reading:
            self._first_s[request] = at
            if self._decoded[request]:
                self._first_pass[request] = len(instance.passes.end_s)
                instance.rows.join(request, self._prompt[request], self._bursts[request])
            else:
                self._finish(instance, request, at)
        if not instance.reading:
            for request, passes in instance.rows.done():
                self._passes[request] = passes
                self._finish(instance, request, at)
        instance.start(at)

    def _finish(self, instance: Instance, request: int, at: float) -> None:
        self._finish_s[request] = at
        instance.release(request)
        if (request + 1) % self._requests.turns:
            heapq.heappush(self._coming, (at + self._think_s[request + 1], request + 1))
        if self._judged[request]:
            first_s = self._first_s[request]
            late = first_s - self._arrival_s[request] > self._slo.ttft_s
            slow = at - first_s > self._slo.tpot_s * self._decoded[request]
            self._violations += late or slow

    def _served(self) -> Served:
        return Served(
            requests=self._requests,
            arrival_s=np.array(self._arrival_s),
            first_s=np.array(self._first_s),
            finish_s=np.array(self._finish_s),
            instance=np.array(self._instance),
            first_pass=np.array(self._first_pass),
            passes=np.array(self._passes),
            by_instance=tuple(instance.passes for instance in self._instances),
        )


def _rows(fleet: Fleet, bursts: Sequence[Bursts]) -> DecodingRows:
    drafts = fleet.speculation
    if drafts is not None and drafts.below_rows is not None:
        return CutOffRows(drafts.below_rows)
    return PlannedRows(sum(len(burst.kept) for burst in bursts), speculates=drafts is not None)
