"""What a cell must pass before it counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from speclab.metrics.counters import gained, was_reset
from speclab.metrics.latency import step_gap
from speclab.metrics.throughput import answering, answering_by_law, in_flight
from speclab.metrics.window import CellWindow

Verdict = Literal["PASS", "WARN", "FAIL"]

FEW_ANSWERS = 10
SLICES = 10


@dataclass(frozen=True, slots=True)
class Check:
    """One verdict on a cell. `value` is None where the check could not be made, which is a WARN and never a PASS."""

    check: str
    verdict: Verdict
    value: float | None
    limit: float
    reason: str


def verdicts(cut: CellWindow) -> list[Check]:
    """Return all checks of a cell."""
    return [
        occupancy_check(cut),
        in_flight_check(cut),
        running_check(cut),
        stationarity_check(cut),
        client_lag_check(cut),
        client_rate_check(cut),
        event_is_step_check(cut),
        usage_check(cut),
        counters_check(cut),
        counter_reset_check(cut),
        speculation_check(cut),
        request_errors_check(cut),
        prefix_cache_check(cut),
    ]


def occupancy_check(cut: CellWindow, limit: float = 0.05) -> Check:
    """Hold Little's law against the requests: both must give the answers being written, within `limit`.

    Decode tokens only: first tokens take no time per output token, and requests that wait for theirs are in flight
    but no answer yet, so they are on neither side. (`occupancy` counts first tokens too, which is 1 in an answer's
    length.)
    """
    name = "occupancy"
    by_law, open_answers, answers = answering_by_law(cut), answering(cut), len(cut.ended)
    if by_law is None or open_answers == 0:
        return Check(name, "WARN", None, limit, "no answer ended inside the window")
    off = by_law / open_answers - 1
    reason = f"throughput x time per token gives {by_law:.3g}, the requests give {open_answers:.3g}"
    verdict = _grade(abs(off), limit, limit)
    if verdict == "FAIL" and answers < FEW_ANSWERS:
        return Check(name, "WARN", off, limit, f"{reason}; only {answers} answers ended, too few to tell")
    return Check(name, verdict, off, limit, reason)


def in_flight_check(cut: CellWindow, limit: float = 0.95) -> Check:
    """Check that the load kept its slots full: requests in flight at least `limit` of the concurrency."""
    concurrency = cut.record.asked.concurrency
    share = in_flight(cut) / concurrency
    verdict: Verdict = "PASS" if share >= limit else "FAIL"
    return Check("in flight", verdict, share, limit, f"{share * concurrency:.4g} of {concurrency} requests in flight")


def running_check(cut: CellWindow, limit: float = 0.95, fail_below: float = 0.90) -> Check:
    """Check that the server ran what was sent and did not queue it: at least `limit` of the concurrency.

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
        return _not_offered(name, limit, "a gauge of running requests")
    reached, queued = float(np.quantile(gauge, 0.9)), float(np.mean(waiting)) if waiting else 0.0
    share = min(reached, concurrency - queued) / concurrency
    verdict: Verdict = "PASS" if share >= limit else "WARN" if share >= fail_below else "FAIL"
    reason = f"{reached:.4g} of {concurrency} running, {queued:.3g} waiting in the mean"
    return Check(name, verdict, share, limit, f"{reason}, {len(gauge)} readings")


def stationarity_check(cut: CellWindow, limit: float = 0.05, fail_above: float = 0.10) -> Check:
    """Check for drift: throughput of the second half within `limit` of the first half's, or not told apart from it.

    The scatter of ten slices of the window says what difference chance makes (Student's t, 95%): a few long answers
    make halves that differ although nothing drifts.
    """
    from scipy import stats  # takes half a second, and most commands do not come here

    name = "stationarity"
    edges = np.linspace(cut.window.opens_s, cut.window.closes_s, SLICES + 1)
    tokens, _ = np.histogram(cut.events.time_s, bins=edges, weights=cut.events.tokens)
    first, second = tokens[: SLICES // 2], tokens[SLICES // 2 :]
    if first.sum() == 0:
        return Check(name, "WARN", None, limit, "no tokens in the first half of the window")
    move = float(second.sum() / first.sum()) - 1
    error = float(np.sqrt((first.var(ddof=1) + second.var(ddof=1)) / len(first)))
    chance = float(stats.t.ppf(0.975, SLICES - 2)) * error / float(first.mean())
    reason = f"second half {move:+.1%} against the first, chance alone gives {chance:.1%}"
    verdict = "PASS" if abs(move) <= chance else _grade(abs(move), limit, fail_above)
    return Check(name, verdict, move, limit, reason)


def client_lag_check(cut: CellWindow, limit: float = 0.25, fail_above: float = 1.0) -> Check:
    """Check that this client reads in time: late by at most `limit` of a step's gap, 99 times of 100.

    A client that is late by a whole step takes two steps for one.
    """
    name, gap_ms, lag = "client lag", step_gap(cut, 0.5), cut.record.client_lag
    if lag is None or not gap_ms:
        return Check(name, "WARN", None, limit, "not measured")
    share = lag.p99_ms / gap_ms
    reason = f"p99 of {lag.p99_ms:.3g} ms beside a step gap of {gap_ms:.3g} ms"
    return Check(name, _grade(share, limit, fail_above), share, limit, reason)


def client_rate_check(cut: CellWindow, limit: float = 1.0) -> Check:
    """Check that this client sees as many events a second as came: at most `limit` of its clean rate."""
    name, clean = "client rate", cut.record.client_clean_rate_per_s
    if cut.record.asked.engine == "simulated":
        return Check(name, "PASS", 0.0, limit, "simulated time waits for this client")
    if clean is None:
        return Check(name, "WARN", None, limit, "not measured: the self-test was left out, or the machine was busy")
    rate = len(cut.events) / cut.window.length_s
    share = rate / clean if clean else np.inf
    reason = f"{rate:,.0f} events/s, of which this client sees up to {clean:,.0f} as they are sent"
    if share <= limit:
        return Check(name, "PASS", share, limit, reason)
    return Check(name, "FAIL", share if clean else None, limit, f"{reason}: your client, not your GPU")


def event_is_step_check(cut: CellWindow, limit: float = 0.01, fail_above: float = 0.05) -> Check:
    """Check that one event is one step: at most `limit` of the decode events hold more than a step's k+1 tokens."""
    name, decode = "event is a step", cut.decode
    if not len(decode):
        return Check(name, "WARN", None, limit, "no decode events inside the window")
    speculation = cut.record.asked.speculation
    most = 1 + (speculation.num_speculative_tokens if speculation else 0)
    share = float((decode.tokens > most).mean())
    return Check(name, _grade(share, limit, fail_above), share, limit, f"{share:.2%} of events hold over {most} tokens")


def usage_check(cut: CellWindow, limit: float = 0.001, fail_above: float = 0.01) -> Check:
    """Check that tokens of the events add up to the server's usage of the answers that ended."""
    name, table = "usage", cut.requests
    if not cut.tells_tokens_of_events:
        return _not_offered(name, limit, "a running count of tokens, so nothing is known of steps")
    ended = (table["output_tokens"].notna() & table["error"].isna()).to_numpy()
    usage = float(table.loc[ended, "output_tokens"].sum())
    if not usage:
        return Check(name, "WARN", None, limit, "no answer ended with usage")
    delivered = float(cut.all_events.tokens[ended[cut.all_events.row]].sum())
    off = 1 - delivered / usage
    reason = f"events hold {delivered:.0f} tokens, usage says {usage:.0f}"
    return Check(name, _grade(abs(off), limit, fail_above), off, limit, reason)


def counter_residual(cut: CellWindow) -> float | None:
    """Return 1 - event tokens / tokens that the server counted between its two readings; None where not offered."""
    gain = gained(cut.record)
    if gain is None or not gain.generation_tokens:
        return None
    return 1 - float(cut.between_readings.tokens.sum()) / gain.generation_tokens


def counters_check(cut: CellWindow, limit: float = 0.02, fail_above: float = 0.05) -> Check:
    """Hold tokens that arrived against tokens that the server counted: nobody else uses it, nothing is lost."""
    residual = counter_residual(cut)
    if residual is None:
        return _not_offered("counters", limit, "a counter of generated tokens")
    reason = (
        f"the server counted {residual:+.2%} more tokens than arrived" if residual else "all counted tokens arrived"
    )
    return Check("counters", _grade(abs(residual), limit, fail_above), residual, limit, reason)


def counter_reset_check(cut: CellWindow) -> Check:
    """Check that no counter fell inside the window."""
    name, readings = "counter reset", cut.record.readings
    if len(readings) < 2 or all(reading.generation_tokens is None for reading in readings):
        return _not_offered(name, 0.0, "counters at both borders")
    fell = sorted(was_reset(readings))
    reason = f"fell inside the window: {', '.join(fell)}" if fell else "no counter fell"
    return Check(name, "FAIL" if fell else "PASS", float(len(fell)), 0.0, reason)


def speculation_check(cut: CellWindow) -> Check:
    """Check that the server did what the arm's name says: it drafted where the arm speculates, and only there.

    vLLM shows its draft counters from the start, at 0, exactly where it speculates; a page of counters without them
    says that nothing was drafted. Any draft passes: n-gram may find few in a real text.
    """
    name, gain, speculates = "speculation", gained(cut.record), cut.record.asked.speculation is not None
    if "drafts" in was_reset(cut.record.readings):
        return Check(name, "WARN", None, 0.0, "the counter of drafts fell inside the window")
    if gain is None or (gain.drafts is None and gain.generation_tokens is None):
        return _not_offered(name, 0.0, "a counter of drafts")
    drafts = gain.drafts or 0.0
    reason = f"{drafts:.0f} drafts" if drafts else "nothing was drafted"
    if speculates == (drafts > 0):
        return Check(name, "PASS", drafts, 0.0, reason)
    return Check(name, "FAIL", drafts, 0.0, f"{reason}, but the arm {'speculates' if speculates else 'does not'}")


def request_errors_check(cut: CellWindow, limit: float = 0.0, fail_above: float = 0.01) -> Check:
    """Check that no request failed; more than `fail_above` of them is another load than the one asked for."""
    failed = cut.requests["error"].notna()
    if failed.empty:
        return Check("request errors", "WARN", None, limit, "no request was sent")
    share = float(failed.mean())
    reason = f"{int(failed.sum())} of {len(failed)} requests failed"
    if failed.any():
        reason = f"{reason}; the first: {cut.requests.loc[failed, 'error'].iloc[0]}"
    return Check("request errors", _grade(share, limit, fail_above), share, limit, reason)


def prefix_cache_check(cut: CellWindow, limit: float = 0.01) -> Check:
    """Check that prompts were computed: they come again in a closed loop, and a cache would make their prefill free."""
    name, gain = "prefix cache", gained(cut.record)
    if gain is None or gain.prefix_cache_queries is None or gain.prefix_cache_hits is None:
        return _not_offered(name, limit, "prefix cache counters")
    share = gain.prefix_cache_hits / gain.prefix_cache_queries if gain.prefix_cache_queries else 0.0
    reason = f"{share:.1%} of {gain.prefix_cache_queries:.0f} prompt tokens came from the cache"
    if share <= limit:
        return Check(name, "PASS", share, limit, reason)
    if cut.record.asked.server.get("enable-prefix-caching") is True:
        return Check(name, "WARN", share, limit, f"{reason}; the lab asks for it")
    return Check(name, "FAIL", share, limit, reason)


def _grade(size: float, limit: float, fail_above: float) -> Verdict:
    return "PASS" if size <= limit else "WARN" if size <= fail_above else "FAIL"


def _not_offered(name: str, limit: float, what: str) -> Check:
    return Check(name, "WARN", None, limit, f"not offered: the server gives no {what.removeprefix('a ')}")
