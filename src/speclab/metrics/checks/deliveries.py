"""Whether one event is one step of its row, with all its tokens: what every figure of a step rests on."""

from __future__ import annotations

import numpy as np

from speclab.metrics.checks.base import NO_RUNNING_COUNT, Band, Check, graded, not_offered
from speclab.metrics.counters import gained
from speclab.metrics.window import CellWindow

OVERFULL = Band(0.01, 0.05)
USAGE = Band(0.001, 0.01)
BUNCHED = Band(0.01, 0.05)
BUNCH = 0.1
"""Share of the mean gap below which two events of a request came together."""
STEPS = Band(0.02, 0.05)


def event_is_step_check(cut: CellWindow) -> Check:
    """Check that no event holds more than one step can give, k + 1 tokens."""
    name, decode = "event is a step", cut.decode
    if not len(decode):
        return Check(name, "WARN", None, OVERFULL.passes, "no decode events inside the window")
    speculation = cut.record.asked.speculation
    most = 1 + (speculation.num_speculative_tokens if speculation else 0)
    share = float((decode.tokens > most).mean())
    return graded(name, OVERFULL, share, f"{share:.2%} of events hold over {most} tokens")


def bunched_events_check(cut: CellWindow) -> Check:
    """Check that time passes between two events of a request.

    A server that streams each token of a step by itself, or a proxy or a late client that hands over several steps at
    once, leaves gaps of nothing. Two steps of a row are a whole step apart.
    """
    name, gap_s = "bunched events", cut.decode.gap_s
    if not len(gap_s):
        return Check(name, "WARN", None, BUNCHED.passes, "no decode events inside the window")
    share = float((gap_s < BUNCH * gap_s.mean()).mean())
    return graded(name, BUNCHED, share, f"{share:.2%} of events came within {BUNCH:.0%} of a mean gap of the last one")


def engine_steps_check(cut: CellWindow) -> Check:
    """Check that no row has more events than the engine took steps: a step gives a row one event at most.

    Only too many can be told. A row that waits while the engine reads prompts has fewer, and the steps of several
    engines (data parallel) are counted together.
    """
    name, gain, rows = "engine steps", gained(cut.record), cut.record.asked.concurrency
    if gain is None or gain.steps is None:
        return not_offered(name, STEPS.passes, "counter of engine steps")
    if not gain.steps:
        return Check(name, "WARN", None, STEPS.passes, "no step was counted")
    events = len(cut.between_readings.decode)
    over = events / (rows * gain.steps) - 1
    reason = f"{events / rows:.4g} events a slot in {gain.steps:.0f} steps of the engine"
    # a border's step, of one row
    return Check(name, STEPS.wider(1 / gain.steps).grade(max(0.0, over)), over, STEPS.passes, reason)


def usage_check(cut: CellWindow) -> Check:
    """Check that tokens of the events add up to the server's usage of the answers that ended."""
    name, table = "usage", cut.requests
    if not cut.tells_tokens_of_events:
        return not_offered(name, USAGE.passes, NO_RUNNING_COUNT)
    ended = (table["output_tokens"].notna() & table["error"].isna()).to_numpy(dtype=np.bool_)
    usage = float(table.loc[ended, "output_tokens"].sum())
    if not usage:
        return Check(name, "WARN", None, USAGE.passes, "no answer ended with usage")
    delivered = float(cut.all_events.tokens[ended[cut.all_events.row]].sum())
    reason = f"events hold {delivered:.0f} tokens, usage says {usage:.0f}"
    return graded(name, USAGE, 1 - delivered / usage, reason)
