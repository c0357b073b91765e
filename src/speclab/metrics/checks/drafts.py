"""Whether the arm drafts as its file says, and the draft counters agree with the events."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from speclab.metrics.checks.base import NO_RUNNING_COUNT, Band, Check, border_rows, graded, not_offered
from speclab.metrics.counters import Gain, gained, was_reset
from speclab.metrics.events import Events
from speclab.metrics.window import CellWindow, Window

EVENTS_TO_TELL = 1000
"""Decode events after which an arm that never gave two tokens at once does not speculate: that any draft of so many
would be refused is no accident."""

SHORT = Band(0.01, 0.05)
LONG = 0.005
"""Draft tokens above k that are more than rounding, as a share of k."""
FINDS_ITS_DRAFTS = frozenset({"ngram"})
"""Methods that draft what they find, at most k; the others draft k at each step."""

SHARE = Band(0.01, 0.05)
IDENTITY = Band(0.03, 0.05)


def speculation_check(cut: CellWindow) -> Check:
    """Check that the server did what the arm's name says: it drafted where the arm speculates, and only there.

    vLLM shows its draft counters from the start, at 0, exactly where it speculates; a page of counters without them
    says that nothing was drafted. Any draft passes: n-gram may find few in a real text. Where there are no counters,
    an event of several tokens shows a draft, and `EVENTS_TO_TELL` events without one show that there was none.
    """
    name, gain, asked = "speculation", gained(cut.record), cut.record.asked
    k = asked.speculation.k_at(asked.concurrency) if asked.speculation else 0
    if "drafts" in was_reset(cut.record.readings):
        return Check(name, "WARN", None, 0.0, "the counter of drafts fell inside the window")
    if gain is None or (gain.drafts is None and gain.generation_tokens is None):
        return _by_events(cut, name, k > 0)
    drafts = gain.drafts or 0.0
    reason = f"{drafts:.0f} drafts" if drafts else "nothing was drafted"
    if asked.speculation is not None and not k:  # fewer requests than the concurrency, for a moment, may draft
        reason = f"{reason}; the schedule drafts nothing at {asked.concurrency} in flight"
        return Check(name, "PASS", drafts, 0.0, reason)
    if (k > 0) == (drafts > 0):
        return Check(name, "PASS", drafts, 0.0, reason)
    return Check(name, "FAIL", drafts, 0.0, f"{reason}, but the arm {'speculates' if k else 'does not'}")


def _by_events(cut: CellWindow, name: str, speculates: bool) -> Check:
    tokens = cut.decode.tokens
    several = float((tokens > 1).sum())
    if speculates and several:
        return Check(name, "PASS", several, 0.0, f"no counter of drafts; {several:.0f} events hold several tokens")
    if speculates and len(tokens) >= EVENTS_TO_TELL:
        reason = f"none of {len(tokens)} events holds more than one token, but the arm speculates"
        return Check(name, "FAIL", several, 0.0, reason)
    return not_offered(name, 0.0, "counter of drafts")


def draft_length_check(cut: CellWindow) -> Check | None:
    """Hold the length of a draft against the arm's k: equal to it, or at most that where drafts must be found."""
    name, gain, speculation = "draft length", gained(cut.record), cut.record.asked.speculation
    if speculation is None or (gain is not None and gain.drafts == 0):
        return None
    if gain is None or gain.drafts is None or gain.draft_tokens is None:
        return not_offered(name, SHORT.passes, "counter of draft tokens")
    k, length = speculation.num_speculative_tokens, gain.draft_tokens / gain.drafts
    may_be_shorter = speculation.method in FINDS_ITS_DRAFTS or speculation.has_schedule
    off = length / k - 1
    reason = f"{length:.3g} tokens a draft, the arm asks for {'at most ' if may_be_shorter else ''}{k}"
    if off > LONG:
        return Check(name, "FAIL", off, LONG, reason)
    return Check(name, "PASS", off, LONG, reason) if may_be_shorter else graded(name, SHORT, off, reason)


def draft_positions_check(cut: CellWindow) -> Check | None:
    """Check the counters of accepted drafts by position: none beyond k, none above the one before it, all add up."""
    name, gain, speculation = "draft positions", gained(cut.record), cut.record.asked.speculation
    if speculation is None or (gain is not None and gain.drafts == 0):
        return None
    if gain is None or gain.drafts is None or gain.accepted_by_position is None:
        return not_offered(name, SHARE.passes, "acceptance by position")
    k, by_position = speculation.num_speculative_tokens, np.array([gain.drafts, *gain.accepted_by_position])
    beyond = float(by_position[k + 1 :].sum())
    if beyond:
        share = beyond / float(by_position[1:].sum())
        return Check(name, "FAIL", share, 0.0, f"{beyond:.0f} tokens accepted beyond position {k}, the last of the arm")
    # drafts of one step may be read into one counter and not yet into the next
    rises = float(np.clip(np.diff(by_position), 0.0, None).max()) / gain.drafts
    total = gain.accepted_tokens
    apart = 0.0 if not total else float(by_position[1:].sum()) / total - 1
    band = SHARE.wider(border_rows(cut) / gain.drafts)
    reason = f"positions add up to {by_position[1:].sum():.0f} accepted tokens"
    reason += "" if total is None else f", the counter of all says {total:.0f}"
    if rises > band.passes:
        reason += f"; one has {rises:.1%} of the drafts more than the one before it"
    return Check(name, band.grade(max(rises, abs(apart))), max(rises, abs(apart)), SHARE.passes, reason)


def drafted_share_check(cut: CellWindow) -> Check | None:
    """Check that shares are shares: at most one draft for each step of a row, at most each draft token accepted.

    An event that merges two steps hides one of them, and drafts then outnumber steps.
    """
    name, gain, steps = "drafted share", gained(cut.record), len(cut.between_readings.decode)
    if cut.record.asked.speculation is None or (gain is not None and gain.drafts == 0):
        return None
    if not cut.tells_tokens_of_events:
        return not_offered(name, SHARE.passes, NO_RUNNING_COUNT)
    if gain is None or gain.drafts is None or not steps:
        return not_offered(name, SHARE.passes, "counter of drafts")
    share, reason = gain.drafts / steps, f"{gain.drafts:.0f} drafts in {steps} steps of a row"
    if gain.accepted_tokens is not None and gain.draft_tokens:
        accepted = gain.accepted_tokens / gain.draft_tokens
        reason += f", {accepted:.1%} of the draft tokens accepted"
        share = max(share, accepted)
    band = SHARE.wider(border_rows(cut) / steps)
    return Check(name, band.grade(max(0.0, share - 1)), share, 1 + SHARE.passes, reason)


def identity_check(cut: CellWindow) -> Check | None:
    """Hold tokens per step by the events against those by the counters, E = 1 + c (E of drafted steps - 1).

    With c drafts a step and E of drafted steps = 1 + accepted / drafts, that is 1 + accepted / steps, an identity. Two
    things are left open, and both are known. At an answer's end the server counts what it accepted and sends what
    fits, so the events may fall short by the tokens that its last step lost; how many that are follows from how often
    steps of that length go on (`lost_at_ends`). And at each reading one step of the rows in flight may be counted and
    not yet here (`border_rows`).
    """
    name, gain, decode = "tokens by counters", gained(cut.record), cut.between_readings.decode
    if cut.record.asked.speculation is None or (gain is not None and gain.drafts == 0):
        return None
    if not cut.tells_tokens_of_events:
        return not_offered(name, IDENTITY.passes, NO_RUNNING_COUNT)
    if gain is None or gain.accepted_tokens is None or not len(decode):
        return not_offered(name, IDENTITY.passes, "counter of accepted tokens")
    steps = len(decode)
    by_events = float(decode.tokens.sum()) / steps
    most = 1 + gain.accepted_tokens / steps
    least = max(1.0, most - lost_at_ends(cut, gain, decode) / steps)
    off = by_events / min(max(by_events, least), most) - 1
    band = IDENTITY.wider(border_rows(cut) * (most - 1) / (steps * most))
    reason = f"{by_events:.3f} tokens per step by events, {most:.3f} by counters"
    reason += f" ({least:.3f} less what answers' ends cut off)" if least < most else ""
    return Check(name, band.grade(off), off, IDENTITY.passes, f"{reason}: {off:+.1%}")


def lost_at_ends(cut: CellWindow, gain: Gain, decode: Events) -> float:
    """Return how many accepted tokens the ends of answers are expected to have cut off, tokens.

    An answer whose last step delivered t tokens had a step of at least t; how many tokens such steps have beyond t in
    the mean, the counters by position say, and the events where there are none. An answer that ended by itself may have
    lost fewer, so this is the most.
    """
    speculation, events = cut.record.asked.speculation, cut.all_events
    if speculation is None or not len(events):
        return 0.0
    k, between = speculation.num_speculative_tokens, Window(gain.from_s, gain.to_s)
    is_last = np.append(events.row[1:] != events.row[:-1], True) & ~events.is_first & between.holds(events.time_s)
    ended = cut.requests["end_s"].notna().to_numpy(np.bool_) & cut.requests["error"].isna().to_numpy(np.bool_)
    delivered = np.minimum(events.tokens[is_last & ended[events.row]], k + 1)
    at_least = np.zeros(k + 3)
    if gain.accepted_by_position is None:
        at_least[:] = [float((decode.tokens >= t).mean()) for t in range(k + 3)]
    else:
        by_position = np.array(gain.accepted_by_position[:k]) / len(decode)
        at_least[:2], at_least[2 : 2 + len(by_position)] = 1.0, by_position
    return float(_beyond(at_least)[delivered].sum())


def _beyond(at_least: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean tokens beyond t of steps with at least t, by t, from the share of steps with at least t."""
    beyond = np.append(np.cumsum(at_least[::-1])[::-1][1:], 0.0)
    mean: NDArray[np.float64] = np.divide(beyond, at_least, out=np.zeros_like(beyond), where=at_least > 0)
    return mean
