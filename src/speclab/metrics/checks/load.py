"""Whether the cell's label is true: so many requests in flight, all of them served, none of them for free."""

from __future__ import annotations

import numpy as np

from speclab.metrics.checks.base import Band, Check, Verdict, graded, not_offered
from speclab.metrics.counters import gained
from speclab.metrics.throughput import answering, in_flight
from speclab.metrics.window import CellWindow

IN_FLIGHT = 0.95
RUNNING, RUNNING_FAILS = 0.95, 0.90
WAITING = Band(0.10, 0.25)
READING_FILLS = 0.8
"""Share of the window spent on reading prompts from which on a queue for it is the load's own."""
STEPS_TO_FIRST = 2.0
"""Steps that a prompt may wait beside its own reading: the one under way, and the one that it joins."""
ERRORS = Band(0.0, 0.01)
PREEMPTED = Band(0.0, 0.05)
CACHED = 0.01


def in_flight_check(cut: CellWindow) -> Check:
    """Check that the load kept its slots full: requests in flight at least `IN_FLIGHT` of the concurrency."""
    concurrency = cut.record.asked.concurrency
    share = in_flight(cut) / concurrency
    verdict: Verdict = "PASS" if share >= IN_FLIGHT else "FAIL"
    return Check(
        "in flight", verdict, share, IN_FLIGHT, f"{share * concurrency:.4g} of {concurrency} requests in flight"
    )


def running_check(cut: CellWindow) -> Check:
    """Check that the server ran what was sent and did not queue it: at least `RUNNING` of the concurrency.

    A server that queues (too few sequences allowed, no room in the cache) makes the cell's label untrue, and shows it
    in one of two ways: requests wait, or the gauge of running requests never reaches the concurrency. The check takes
    the worse of the two: the concurrency less the mean of the waiting, and the gauge's 90th percentile.

    Not the gauge's mean. A server sets it when a step ends, with the requests that the step finished taken out and the
    ones that replace them not yet in, and it stands so until the next step ends, which may be a long prefill. The mean
    falls short by the answers that end, in a server that never queued anything.
    """
    name, concurrency = "running requests", cut.record.asked.concurrency
    gauge = [reading.running for reading in cut.record.readings if reading.running is not None]
    waiting = [reading.waiting for reading in cut.record.readings if reading.waiting is not None]
    if not gauge:
        return not_offered(name, RUNNING, "gauge of running requests")
    reached, queued = float(np.quantile(gauge, 0.9)), float(np.mean(waiting)) if waiting else 0.0
    share = min(reached, concurrency - queued) / concurrency
    verdict: Verdict = "PASS" if share >= RUNNING else "WARN" if share >= RUNNING_FAILS else "FAIL"
    reason = f"{reached:.4g} of {concurrency} running, {queued:.3g} waiting in the mean"
    return Check(name, verdict, share, RUNNING, f"{reason}, {len(gauge)} readings")


def answering_check(cut: CellWindow) -> Check:
    """Check that requests in flight are being answered, but for the time that reading their prompts takes.

    A server that serves fewer requests at once than it takes in, or leaves some of them silent, makes the label untrue
    whether it has gauges or not. What may keep a request from its first token is the reading of its own prompt, of the
    prompts before it, and `STEPS_TO_FIRST` steps; the rest of the waiting is unexplained. A prompt's reading takes what
    the quickest first token of the cell says, by the request or by its prompt's tokens, whichever is more; prompts that
    are read one after the other for a share r of the time wait for each other for r^2 / 2(1 - r) in the mean (M/D/1).
    Where reading alone fills the window, a queue is the load's own, and a WARN.
    """
    name, flying = "answering", in_flight(cut)
    waited_s = (cut.requests["first_s"] - cut.requests["start_s"]).to_numpy(np.float64)
    if not flying or not len(cut.decode) or np.isnan(waited_s).all():
        return Check(name, "WARN", None, WAITING.passes, "no answer was being written inside the window")
    lengths = cut.requests["prompt_tokens"].to_numpy(np.float64, na_value=np.nan)
    per_token_s = np.nanmin(np.append(waited_s / np.where(lengths > 0, lengths, np.nan), np.inf))
    by_length_s = np.nan_to_num(lengths) * (per_token_s if np.isfinite(per_token_s) else 0.0)
    began = cut.window.holds(cut.requests["first_s"].to_numpy(np.float64))
    reads_s = float(np.maximum(np.nanmin(waited_s), by_length_s)[began].sum())
    share = reads_s / cut.window.length_s
    queue = share**2 / (2 * (1 - share)) if share < READING_FILLS else np.inf
    joins = STEPS_TO_FIRST * float(cut.decode.gap_s.mean()) * float(began.sum()) / cut.window.length_s
    waiting = flying - answering(cut)
    fills = not np.isfinite(queue)
    unexplained = max(0.0, waiting - share - joins - (0.0 if fills else queue)) / flying
    reason = (
        f"{answering(cut):.3g} of {flying:.3g} in flight were being answered; prompts were read {min(share, 1):.0%} of "
        f"the time, which leaves {unexplained:.0%} without a reason"
    )
    found = graded(name, WAITING, unexplained, reason)
    return Check(name, "WARN", *_rest(found)) if fills and found.verdict == "FAIL" else found


def _rest(check: Check) -> tuple[float | None, float, str]:
    return check.value, check.limit, check.reason


def request_errors_check(cut: CellWindow) -> Check:
    """Check that no request failed; many that did are another load than the one asked for."""
    name, failed = "request errors", cut.requests["error"].notna()
    if failed.empty:
        return Check(name, "WARN", None, ERRORS.passes, "no request was sent")
    reason = f"{int(failed.sum())} of {len(failed)} requests failed"
    if failed.any():
        reason = f"{reason}; the first: {cut.requests.loc[failed, 'error'].iloc[0]}"
    return graded(name, ERRORS, float(failed.mean()), reason)


def preemptions_check(cut: CellWindow) -> Check:
    """Check that the server put no running request back: it writes such an answer's beginning twice.

    It does so where the KV cache has no room, so the cell runs fewer requests than its label says, and part of its work
    gives no token.
    """
    name, gain = "preemptions", gained(cut.record)
    if gain is None or gain.preemptions is None:
        return not_offered(name, PREEMPTED.passes, "counter of preemptions")
    sent = max(int((cut.window.holds(cut.requests["start_s"].to_numpy(np.float64))).sum()), 1)
    reason = f"{gain.preemptions:.0f} preemptions while {sent} requests were sent"
    return graded(name, PREEMPTED, gain.preemptions / sent, reason)


def prefix_cache_check(cut: CellWindow) -> Check:
    """Check that prompts were computed: they come again in a closed loop, and a cache would make their prefill free."""
    name, gain = "prefix cache", gained(cut.record)
    if gain is None or gain.prefix_cache_queries is None or gain.prefix_cache_hits is None:
        return not_offered(name, CACHED, "prefix cache counters")
    share = gain.prefix_cache_hits / gain.prefix_cache_queries if gain.prefix_cache_queries else 0.0
    reason = f"{share:.1%} of {gain.prefix_cache_queries:.0f} prompt tokens came from the cache"
    if share <= CACHED:
        return Check(name, "PASS", share, CACHED, reason)
    if cut.record.asked.server.get("enable-prefix-caching") is True:
        return Check(name, "WARN", share, CACHED, f"{reason}; the lab asks for it")
    return Check(name, "FAIL", share, CACHED, reason)
