"""The table of checks of one cell: names, tolerances, remedies, and what cannot be relied on where one fails."""

from __future__ import annotations

from speclab.metrics.checks import counted, deliveries, drafts, drift, load, pace
from speclab.metrics.checks.base import ALL, DRAFTS, EVENTS, TIME, Check, CheckEntry
from speclab.metrics.window import CellWindow

OF_A_CELL = (
    CheckEntry(
        "occupancy",
        "do throughput and time per token agree with the answers that were being written? (Little's law)",
        f"within {pace.OCCUPANCY.passes:.0%}",
        f"beyond {pace.OCCUPANCY.fails:.0%}; WARN when fewer than {pace.FEW_ANSWERS} answers ended",
        "lengthen the window until it holds several answers of each slot; see the checks usage and counters",
        TIME,
        pace.occupancy_check,
    ),
    CheckEntry(
        "in flight",
        "did the load keep its slots full?",
        f"at least {load.IN_FLIGHT:.0%} of the concurrency",
        "below",
        "look for failed requests, or for a client that is slow to send the next one",
        TIME,
        load.in_flight_check,
    ),
    CheckEntry(
        "running requests",
        "did the server run what was sent, or did it queue? The worse of two: the concurrency less the requests that "
        "waited in the mean, and the 90th percentile of the gauge of running requests",
        f"at least {load.RUNNING:.0%} of the concurrency",
        f"below {load.RUNNING_FAILS:.0%}",
        "raise max-num-seqs or the room for the KV cache, or lower the concurrency",
        TIME,
        load.running_check,
    ),
    CheckEntry(
        "answering",
        "were the requests in flight being answered? The share that waited for a first token though neither its prompt "
        f"nor one before it was being read ({load.STEPS_TO_FIRST:g} steps are granted). It needs no gauge",
        f"at most {load.WAITING.passes:.0%}",
        f"above {load.WAITING.fails:.0%}; WARN where reading prompts fills {load.READING_FILLS:.0%} of the window",
        "find out how many requests the server runs at once (max-num-seqs, a proxy's limit) and which stay silent, or "
        "lower the concurrency",
        TIME,
        load.answering_check,
    ),
    CheckEntry(
        "preemptions",
        "did the server put running requests back, for want of room in the KV cache? As a share of the requests sent",
        "none",
        f"more than {load.PREEMPTED.fails:.0%}",
        "give the KV cache more room (gpu-memory-utilization, max-model-len), or lower the concurrency",
        TIME,
        load.preemptions_check,
    ),
    CheckEntry(
        "stationarity",
        "does the throughput of the second half of the window differ from the first's?",
        f"within {pace.DRIFT.passes:.0%}, or within what chance makes",
        f"beyond {pace.DRIFT.fails:.0%}",
        "run it again with nothing else on the machine, or lengthen the window",
        TIME,
        pace.stationarity_check,
    ),
    CheckEntry(
        "client lag",
        "did this client read in time? Late by a whole step, it takes two steps for one",
        f"p99 of the event loop's lag at most {pace.LAG.passes:.0%} of a step",
        f"above {pace.LAG.fails:.0%}",
        "run the client on cores of its own; `speclab selftest` says what it sees cleanly",
        TIME | EVENTS,
        pace.client_lag_check,
    ),
    CheckEntry(
        "client rate",
        "does this client see as many events a second as came? Beyond its clean rate a cell shows the client, not the "
        "server",
        f"at most {pace.CLEAN_RATE:.0%} of the clean rate",
        "above; WARN where no self-test was made",
        "run the client on faster cores with nothing else to do (`speclab selftest`), or fewer in flight",
        TIME | EVENTS,
        pace.client_rate_check,
    ),
    CheckEntry(
        "event is a step",
        "does one stream event hold one step's tokens, at most k + 1?",
        f"at most {deliveries.OVERFULL.passes:.0%} of events hold more",
        f"more than {deliveries.OVERFULL.fails:.0%}",
        "set stream-interval to 1, and look for a proxy that gathers events",
        EVENTS,
        deliveries.event_is_step_check,
    ),
    CheckEntry(
        "bunched events",
        "does time pass between two events of a request? The share of gaps below "
        f"{deliveries.BUNCH:.0%} of the mean gap: tokens of one step that come one by one, or steps that come together",
        f"at most {deliveries.BUNCHED.passes:.0%}",
        f"above {deliveries.BUNCHED.fails:.0%}",
        "have the server stream a step's tokens as one event, and look for a proxy or a client that is late",
        EVENTS,
        deliveries.bunched_events_check,
    ),
    CheckEntry(
        "engine steps",
        "do events outnumber the engine's own steps, in any slot? A step gives a row one event at most",
        f"by at most {deliveries.STEPS.passes:.0%}, and a border's step",
        f"by more than {deliveries.STEPS.fails:.0%}",
        "have the server stream a step's tokens as one event; until then take tokens per step from its counters",
        EVENTS,
        deliveries.engine_steps_check,
    ),
    CheckEntry(
        "usage",
        "do the events' tokens add up to the server's own usage?",
        f"within {deliveries.USAGE.passes:.1%}",
        f"beyond {deliveries.USAGE.fails:.0%}",
        "look for lost events; send stream_options.include_usage",
        TIME | EVENTS,
        deliveries.usage_check,
    ),
    CheckEntry(
        "counters",
        "do the tokens that arrived agree with those that the server counted? Then nobody else uses it",
        f"within {counted.RESIDUAL.passes:.0%}",
        f"beyond {counted.RESIDUAL.fails:.0%}",
        "keep other traffic off the server",
        TIME | {"counters"},
        counted.counters_check,
    ),
    CheckEntry(
        "counter reset",
        "did a counter fall inside the window? Then the server started anew",
        "none fell",
        "any fell",
        "find out why the server started again: the end of its log is in the cell's record",
        TIME | {"counters"},
        counted.counter_reset_check,
    ),
    CheckEntry(
        "speculation",
        "did the server draft where the arm speculates, and only there? Any draft will do: n-gram finds few in some "
        "texts. Where there are no counters, an event of several tokens shows a draft",
        "drafts in an arm with speculation, unless its schedule drafts nothing at the cell's requests in flight; none "
        "in one without",
        "none where the arm speculates, or some where it does not; without counters, "
        f"{drafts.EVENTS_TO_TELL:,} events of one token each where it speculates",
        "compare the server's flags with the arm's speculation",
        ALL,
        drafts.speculation_check,
    ),
    CheckEntry(
        "draft length",
        "is a draft as long as the arm's k? An n-gram draft may be shorter, since it has to be found",
        f"within {drafts.SHORT.passes:.0%} below k, and not above it",
        f"more than {drafts.SHORT.fails:.0%} below, or above k at all",
        "the server drafts another number of tokens than the arm's file says: correct num_speculative_tokens in one of "
        "the two",
        ALL,
        drafts.draft_length_check,
    ),
    CheckEntry(
        "draft positions",
        "do the counters of accepted drafts by position fall, add up to all accepted tokens, and end at k?",
        f"within {drafts.SHARE.passes:.0%} and a step at each border; none beyond k",
        f"beyond {drafts.SHARE.fails:.0%}; any beyond k",
        "compare the arm's num_speculative_tokens with the server's; where positions do not add up, doubt its counters",
        DRAFTS,
        drafts.draft_positions_check,
    ),
    CheckEntry(
        "drafted share",
        "are there at most as many drafts as steps of a row, and accepted tokens as drafted ones?",
        f"at most {1 + drafts.SHARE.passes:.2f}, and a step at each border",
        f"above {1 + drafts.SHARE.fails:.2f}",
        "set stream-interval to 1, and look for a proxy that gathers events: two steps came as one",
        DRAFTS | EVENTS,
        drafts.drafted_share_check,
    ),
    CheckEntry(
        "tokens by counters",
        "do tokens per step by the events equal 1 + accepted tokens / steps, which is 1 + coverage x (acceptance "
        "length - 1)? What ends of answers cut off is known and allowed for",
        f"within {drafts.IDENTITY.passes:.0%}, and a step at each border",
        f"beyond {drafts.IDENTITY.fails:.0%}",
        "see the checks bunched events and drafted share; if both pass, doubt the server's counter of accepted tokens",
        DRAFTS | EVENTS,
        drafts.identity_check,
    ),
    CheckEntry(
        "acceptance holds",
        "is acceptance the same before and after a quarter, half and three quarters of the window?",
        f"within {drift.MOVE.passes:.0%}, or within what chance makes of these answers",
        f"beyond {drift.MOVE.fails:.0%}, and beyond what chance makes in {drift.FAILS_AT:.1%} of cells",
        "where the window holds few answers of each slot, lengthen it: all began together, and acceptance differs over "
        "an answer; otherwise find out what changed on the server, and run it again",
        DRAFTS,
        drift.acceptance_check,
    ),
    CheckEntry(
        "request errors",
        "did requests fail?",
        "none",
        f"more than {load.ERRORS.fails:.0%}",
        "read the first error; the server's log has the rest",
        ALL,
        load.request_errors_check,
    ),
    CheckEntry(
        "prefix cache",
        "were the prompts computed? In a closed loop they come again, and with a cache their prefill would be free",
        f"at most {load.CACHED:.0%} of prompt tokens from the cache",
        "more, unless the lab asks for it (WARN)",
        "turn enable-prefix-caching off, or say in the lab that it is wanted",
        TIME,
        load.prefix_cache_check,
    ),
)
"""Every check of one cell, in the order in which they are shown."""


def verdicts(cut: CellWindow) -> list[Check]:
    """Return all checks of a cell that apply to it."""
    made = (entry.ask(cut) for entry in OF_A_CELL if entry.ask is not None)
    return [check for check in made if check is not None]
