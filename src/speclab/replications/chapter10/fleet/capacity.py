"""The highest load at which enough requests meet their SLOs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from speclab.replications.chapter10.fleet.draws import Bursts
from speclab.replications.chapter10.fleet.fleet import Fleet
from speclab.replications.chapter10.fleet.metrics import ATTAINMENT_TARGET, RAMP, attainment
from speclab.replications.chapter10.fleet.served import Served
from speclab.replications.chapter10.fleet.simulate import NO_SLO, SLO, SLOViolated, serve
from speclab.replications.chapter10.fleet.workload import FleetWorkload, Requests, draw

HIGHEST = 1e4
"""Rate above which no search goes, sessions/s."""

HALVINGS = 6
RESOLUTION = 0.05


class Capacity(NamedTuple):
    """The result of a search."""

    rate: float | None
    """Highest rate that was carried, sessions/s; None where even the lowest was not."""
    served: Served | None
    """The run at that rate."""
    runs: int
    """Runs that the search took."""


class LoadTest:
    """One fleet and one workload, run at any rate with the same draws.

    Parameters
    ----------
    fleet, workload : Fleet, FleetWorkload
        The fleet under test, and its workload.
    seed : int
        Seed of arrivals and lengths.
    """

    def __init__(self, fleet: Fleet, workload: FleetWorkload, seed: int = 1):
        self.fleet, self.workload, self.seed = fleet, workload, seed
        self._bursts: list[Bursts] = []

    def run(self, rate: float, slo: SLO = NO_SLO) -> Served:
        """Return a run at `rate` sessions/s; see `serve`."""
        return self._serve(draw(self.workload, rate, self.seed), slo)

    def carried(self, rate: float) -> Served | None:
        """Return a run at `rate` sessions/s if enough of its requests meet their SLOs."""
        requests = draw(self.workload, rate, self.seed)
        count = len(requests)
        # at most `count` less the ramp are judged, so that one miss more than this fails the run whatever follows
        most_violations = (1 - ATTAINMENT_TARGET) * (count - int(RAMP * count)) + 1
        slo = SLO(self.workload.ttft_slo_s, self.workload.tpot_slo_s, int(RAMP * count), most_violations)
        try:
            served = self._serve(requests, slo)
        except SLOViolated:
            return None
        return served if attainment(served, self.workload) >= ATTAINMENT_TARGET else None

    def capacity(self, start: float) -> Capacity:
        """Return the highest rate that is carried, searched from `start` sessions/s."""
        runs: dict[float, Served | None] = {}

        def carried(rate: float) -> bool:
            runs[rate] = self.carried(rate)
            return runs[rate] is not None

        rate = search(carried, start)
        return Capacity(rate, None if rate is None else runs[rate], len(runs))

    def _serve(self, requests: Requests, slo: SLO) -> Served:
        # lengths do not depend on the rate: a longer run begins like a shorter one
        for request in range(len(self._bursts), len(requests)):
            self._bursts.append(self.fleet.bursts(request, int(requests.output[request]) - 1))
        return serve(self.fleet, requests, self._bursts, slo)


def search(carried: Callable[[float], bool], start: float) -> float | None:
    """Return the highest rate that is carried, or None.

    From `start` it doubles until a rate is not carried, or halves until one is (`HALVINGS` times at most); then it
    halves the gap until that is `RESOLUTION` of its upper end.
    """
    low, high = start, start
    if carried(start):
        while high < HIGHEST:
            low, high = high, 2 * high
            if not carried(high):
                break
        else:
            return high
    else:
        for _ in range(HALVINGS):
            low, high = low / 2, low
            if carried(low):
                break
        else:
            return None
    while high - low > RESOLUTION * high:
        middle = (low + high) / 2
        if carried(middle):
            low = middle
        else:
            high = middle
    return low
