"""The metrics of a run: latencies, SLO attainment, throughput, cost and energy.

Definitions are those of the public simulator *Disaggregated_Inference_Sim*. All tokens of one pass arrive together: the
gap to the first of them is the time since the row's previous token, the gaps between them are zero, and they count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from speclab.replications.chapter10.fleet.fleet import Fleet
from speclab.replications.chapter10.fleet.served import Floats, Ints, Served
from speclab.replications.chapter10.fleet.workload import FleetWorkload
from speclab.roofline.devices import device

RAMP = 0.1
"""Share of the requests, the earliest, that are left out of latencies and attainment."""

ATTAINMENT_TARGET = 0.9
"""Share of requests that must meet both SLOs for a load to count as carried."""

METRICS = ("goodput_per_gpu", "usd_per_mtok", "j_per_tok", "ttft_p99_s", "tpot_p99_s", "itl_p99_s")
"""The six that the source's tables compare."""


@dataclass(frozen=True, slots=True)
class Latencies:
    """Latencies of the finished requests but the earliest; arrays, s.

    Attributes
    ----------
    ttft : ndarray of float, shape (requests,)
        Time to the first token.
    tpot : ndarray of float
        Time per token after the first; requests of one token have none.
    itl : ndarray of float
        Gaps between consecutive tokens, zeros inside bursts included.
    """

    ttft: Floats
    tpot: Floats
    itl: Floats


def latencies(served: Served) -> Latencies:
    """Return the latencies of a run."""
    finished = np.flatnonzero(np.isfinite(served.finish_s))
    judged = finished[np.argsort(served.arrival_s[finished], kind="stable")][int(RAMP * len(finished)) :]
    decoded = served.requests.output[judged] - 1
    several = decoded > 0
    span_s = (served.finish_s - served.first_s)[judged]
    return Latencies(
        ttft=(served.first_s - served.arrival_s)[judged],
        tpot=span_s[several] / decoded[several],
        itl=_token_gaps(served, judged[several]),
    )


def _token_gaps(served: Served, judged: Ints) -> Floats:
    parts = []
    for number, passes in enumerate(served.by_instance):
        of_instance = judged[served.instance[judged] == number]
        if not len(of_instance):
            continue
        end_s = np.asarray(passes.end_s)
        joined, left = served.first_pass[of_instance], served.first_pass[of_instance] + served.passes[of_instance]
        steps = np.bincount(joined, minlength=len(end_s) + 1) - np.bincount(left, minlength=len(end_s) + 1)
        continuing = np.cumsum(steps)[:-1] - np.bincount(joined, minlength=len(end_s))
        parts.append(np.repeat(np.diff(end_s, prepend=0.0), continuing))
        parts.append(end_s[joined] - served.first_s[of_instance])
    tokens = int((served.requests.output[judged] - 1).sum())
    parts.append(np.zeros(tokens - int(served.passes[judged].sum())))  # inside bursts
    return np.concatenate(parts)


def window(served: Served) -> Ints:
    """Return the requests that count: neither the earliest nor any that arrived after the last session began."""
    order = np.argsort(served.arrival_s, kind="stable")
    order = order[: int(np.isfinite(served.arrival_s).sum())]
    last = np.nanmax(served.requests.arrival_s)
    order = order[int(RAMP * len(order)) :]
    return order[served.arrival_s[order] <= last]


def attainment(served: Served, workload: FleetWorkload, multiple: float = 1.0) -> float:
    """Return the share of requests in the window that meet both SLOs, each relaxed `multiple` times.

    A request that no instance could ever hold misses them.
    """
    counted = window(served)
    decoded = np.maximum(served.requests.output[counted] - 1, 1)
    ttft_s = (served.first_s - served.arrival_s)[counted]
    tpot_s = (served.finish_s - served.first_s)[counted] / decoded
    meets = (ttft_s <= multiple * workload.ttft_slo_s) & (tpot_s <= multiple * workload.tpot_slo_s)  # NaN misses them
    return float(meets.mean())


def throughput(served: Served, *, saturated: bool = False) -> tuple[float, float]:
    """Return requests and output tokens per second.

    Counted between the window's first and last arrival, the last one excluded; where all arrive at once
    (`saturated`), over the whole run and all finished requests.
    """
    if saturated:
        finished = np.isfinite(served.finish_s)
        tokens = float(served.requests.output[finished].sum())
        return float(finished.sum()) / served.horizon_s, tokens / served.horizon_s
    counted = window(served)
    span_s = float(np.ptp(served.arrival_s[counted]))
    return (len(counted) - 1) / span_s, float(served.requests.output[counted[:-1]].sum()) / span_s


def total_energy(served: Served, fleet: Fleet) -> float:
    """Return the energy of a whole run, power at rest included, J."""
    at_rest_j = device(fleet.device).idle_w * fleet.all_gpus * served.horizon_s
    return at_rest_j + sum(passes.energy_j for passes in served.by_instance)


def at_capacity(served: Served, fleet: Fleet, *, saturated: bool = False) -> dict[str, float]:
    """Return throughput, cost and energy of a run."""
    requests_s, tokens_s = throughput(served, saturated=saturated)
    usd = device(fleet.device).usd_per_hour
    finished = np.isfinite(served.finish_s)
    return {
        "goodput_per_gpu": requests_s / fleet.all_gpus,
        "tok_s": tokens_s,
        "usd_per_mtok": np.nan if usd is None else usd * fleet.all_gpus / 3600 / tokens_s * 1e6,
        "j_per_tok": total_energy(served, fleet) / float(served.requests.output[finished].sum()),
    }


def at_load(served: Served) -> dict[str, float]:
    """Return the latencies of a run, tokens per pass of a row, and the drafter's share of the busy time."""
    times = latencies(served)
    row_passes = int(served.passes.sum())
    decoded = float((served.requests.output - 1)[np.isfinite(served.finish_s)].sum())
    worked_s = sum(passes.worked_s for passes in served.by_instance)
    drafted_s = sum(passes.drafted_s for passes in served.by_instance)
    percentiles = {
        f"{name}_p{at}_s": float(np.percentile(values, at)) if len(values) else np.nan
        for name, values in (("ttft", times.ttft), ("tpot", times.tpot), ("itl", times.itl))
        for at in (50, 99)
    }
    return percentiles | {
        "tokens_per_pass": decoded / row_passes if row_passes else np.nan,
        "draft_share": drafted_s / worked_s,
    }
