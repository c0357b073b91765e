"""What the server's own counters gained over the window."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from speclab.engines.base import Reading
from speclab.record.schema import CellRecord

COUNTERS = (
    "steps",
    "prompt_tokens",
    "generation_tokens",
    "preemptions",
    "prefix_cache_queries",
    "prefix_cache_hits",
    "drafts",
    "draft_tokens",
    "accepted_tokens",
)
"""Fields of `Reading` that only ever rise; the others are gauges."""


@dataclass(frozen=True, slots=True)
class Gain:
    """Difference of the last and the first reading. None: not offered, or reset in between.

    ``from_s`` and ``to_s`` are the moments of the two readings: a server that answers late moves them off the borders.
    """

    from_s: float
    to_s: float
    steps: float | None
    generation_tokens: float | None
    prefix_cache_queries: float | None
    prefix_cache_hits: float | None
    drafts: float | None
    draft_tokens: float | None
    accepted_tokens: float | None
    accepted_by_position: tuple[float, ...] | None


def gained(record: CellRecord) -> Gain | None:
    """Return what the counters gained between the window's two borders; None with fewer than two readings of them.

    A reading that failed holds no counter at all and is no reading: counters run from the server's start, and what they
    held before the window is not known from it. The first and the last that came are taken, at their own moments.
    """
    offered = [reading for reading in record.readings if any(getattr(reading, name) is not None for name in COUNTERS)]
    if len(offered) < 2:
        return None
    first, last = offered[0], offered[-1]
    resets = was_reset(record.readings)

    def difference(counter: str) -> float | None:
        before, after = getattr(first, counter), getattr(last, counter)
        # a labelled counter shows up with its first event: absent before and there after means it began at 0
        if after is None or counter in resets:
            return None
        return float(after) - float(before or 0.0)

    by_position = None
    if last.accepted_by_position is not None and "accepted_by_position" not in resets:
        before = first.accepted_by_position or ()
        before = before + (0.0,) * (len(last.accepted_by_position) - len(before))
        by_position = tuple(after - was for after, was in zip(last.accepted_by_position, before, strict=True))
    return Gain(
        from_s=first.at_s,
        to_s=last.at_s,
        steps=difference("steps"),
        generation_tokens=difference("generation_tokens"),
        prefix_cache_queries=difference("prefix_cache_queries"),
        prefix_cache_hits=difference("prefix_cache_hits"),
        drafts=difference("drafts"),
        draft_tokens=difference("draft_tokens"),
        accepted_tokens=difference("accepted_tokens"),
        accepted_by_position=by_position,
    )


def was_reset(readings: tuple[Reading, ...]) -> set[str]:
    """Return the counters that fell from one reading to the next: the server started again, or reset them."""
    fell = set()
    for counter in COUNTERS:
        values = [value for reading in readings if (value := getattr(reading, counter)) is not None]
        if any(later < earlier for earlier, later in pairwise(values)):
            fell.add(counter)
    vectors = [reading.accepted_by_position for reading in readings if reading.accepted_by_position is not None]
    for earlier_vector, later_vector in pairwise(vectors):
        shrank = len(later_vector) < len(earlier_vector)
        if shrank or any(b < a for a, b in zip(earlier_vector, later_vector, strict=False)):
            fell.add("accepted_by_position")
    return fell
