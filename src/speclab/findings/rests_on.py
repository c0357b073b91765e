"""Which checks each finding rests on.

How fast tokens came, and which tokens they were, are two questions. A machine that slowed down halfway through a window
spoils the first and leaves the second alone: the same text is accepted or not at any speed.
"""

from __future__ import annotations

EVERY_CHECK: frozenset[str] | None = None
"""What a finding rests on that is not named here: all checks of its cells."""

_BY_COUNTERS = frozenset({"counters", "counter reset", "speculation", "request errors"})
"""Text as the server counts it: its counters must be whole, and nobody else's."""

_BY_EVENTS = frozenset({"usage", "event is a step", "client lag", "speculation", "request errors"})
"""Text as it arrives: one event must be one step, and no token may be missing."""

RESTS_ON: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        (
            "reported_acceptance_length",
            "draft_tokens_per_draft",
            "acceptance_drift",
            "acceptance_by_position",
            "acceptance_by_position_conditional",
        ),
        _BY_COUNTERS,
    ),
    **dict.fromkeys(
        ("tokens_per_step", "acceptance_trend", "acceptance_over_answer", "acceptance_over_prompt"), _BY_EVENTS
    ),
    "draft_coverage": _BY_COUNTERS | _BY_EVENTS,
}
"""Findings about the text alone, each with its checks."""


def checks_of(finding: str | None) -> frozenset[str] | None:
    """Return the names of the checks that a finding rests on; None for all."""
    return EVERY_CHECK if finding is None else RESTS_ON.get(finding, EVERY_CHECK)
