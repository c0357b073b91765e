"""Whether the window's time is what it seems: Little's law, drift, and a client that reads in time."""

from __future__ import annotations

import numpy as np

from speclab.metrics.checks.base import Band, Check, graded
from speclab.metrics.latency import step_gap
from speclab.metrics.throughput import answering, answering_by_law
from speclab.metrics.window import CellWindow

OCCUPANCY = Band(0.05, 0.05)
FEW_ANSWERS = 10
DRIFT = Band(0.05, 0.10)
SLICES = 10
LAG = Band(0.25, 1.0)
CLEAN_RATE = 1.0


def occupancy_check(cut: CellWindow) -> Check:
    """Hold Little's law against the requests: both must give the answers being written, within `OCCUPANCY`.

    Decode tokens only: first tokens take no time per output token, and requests that wait for theirs are in flight
    but no answer yet, so they are on neither side. (`occupancy` counts first tokens too, which is 1 in an answer's
    length.)
    """
    name, limit = "occupancy", OCCUPANCY.passes
    by_law, open_answers, answers = answering_by_law(cut), answering(cut), len(cut.ended)
    if by_law is None or open_answers == 0:
        return Check(name, "WARN", None, limit, "no answer ended inside the window")
    off = by_law / open_answers - 1
    reason = f"throughput x time per token gives {by_law:.3g}, the requests give {open_answers:.3g}"
    found = graded(name, OCCUPANCY, off, reason)
    if found.verdict == "FAIL" and answers < FEW_ANSWERS:
        return Check(name, "WARN", off, limit, f"{reason}; only {answers} answers ended, too few to tell")
    return found


def stationarity_check(cut: CellWindow) -> Check:
    """Check for drift: throughput of the second half within `DRIFT` of the first half's, or not told apart from it.

    The scatter of ten slices of the window says what difference chance makes (Student's t, 95%): a few long answers
    make halves that differ although nothing drifts.
    """
    from scipy import stats  # takes half a second, and most commands do not come here

    name = "stationarity"
    edges = np.linspace(cut.window.opens_s, cut.window.closes_s, SLICES + 1)
    tokens, _ = np.histogram(cut.events.time_s, bins=edges, weights=cut.events.tokens)
    first, second = tokens[: SLICES // 2], tokens[SLICES // 2 :]
    if first.sum() == 0:
        return Check(name, "WARN", None, DRIFT.passes, "no tokens in the first half of the window")
    move = float(second.sum() / first.sum()) - 1
    error = float(np.sqrt((first.var(ddof=1) + second.var(ddof=1)) / len(first)))
    chance = float(stats.t.ppf(0.975, SLICES - 2)) * error / float(first.mean())
    reason = f"second half {move:+.1%} against the first, chance alone gives {chance:.1%}"
    found = graded(name, DRIFT, move, reason)
    return Check(name, "PASS", move, DRIFT.passes, reason) if abs(move) <= chance else found


def client_lag_check(cut: CellWindow) -> Check:
    """Check that this client reads in time: late by at most a part of a step's gap, 99 times of 100.

    A client that is late by a whole step takes two steps for one.
    """
    name, gap_ms, lag = "client lag", step_gap(cut, 0.5), cut.record.client_lag
    if lag is None or not gap_ms:
        return Check(name, "WARN", None, LAG.passes, "not measured")
    reason = f"p99 of {lag.p99_ms:.3g} ms beside a step gap of {gap_ms:.3g} ms"
    return graded(name, LAG, lag.p99_ms / gap_ms, reason)


def client_rate_check(cut: CellWindow) -> Check:
    """Check that this client sees as many events a second as came: at most `CLEAN_RATE` of its clean rate."""
    name, clean = "client rate", cut.record.client_clean_rate_per_s
    if cut.record.asked.engine == "simulated":
        return Check(name, "PASS", 0.0, CLEAN_RATE, "simulated time waits for this client")
    if clean is None:
        reason = "not measured: the self-test was left out, or the machine was busy"
        return Check(name, "WARN", None, CLEAN_RATE, reason)
    rate = len(cut.events) / cut.window.length_s
    share = rate / clean if clean else np.inf
    reason = f"{rate:,.0f} events/s, of which this client sees up to {clean:,.0f} as they are sent"
    if share <= CLEAN_RATE:
        return Check(name, "PASS", share, CLEAN_RATE, reason)
    return Check(name, "FAIL", share if clean else None, CLEAN_RATE, f"{reason}: your client, not your GPU")
