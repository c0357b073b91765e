"""What a check is: a verdict on one cell, its limits, and the figures that cannot be right where it fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from speclab.metrics.window import CellWindow

Verdict = Literal["PASS", "WARN", "FAIL"]

Aspect = Literal["pace", "answers", "steps", "text", "counters"]

ASPECTS: dict[Aspect, str] = {
    "pace": "throughput",
    "answers": "time of answers",
    "steps": "time of steps",
    "text": "tokens per step, by events",
    "counters": "acceptance, by counters",
}
"""What a finding can rest on, in words. A check that fails takes away the findings that rest on what it bears on."""

TIME: frozenset[Aspect] = frozenset({"pace", "answers", "steps"})
EVENTS: frozenset[Aspect] = frozenset({"steps", "text"})
DRAFTS: frozenset[Aspect] = frozenset({"text", "counters"})
ALL: frozenset[Aspect] = frozenset(ASPECTS)


@dataclass(frozen=True, slots=True)
class Check:
    """One verdict on a cell. `value` is None where the check could not be made, which is a WARN and never a PASS."""

    check: str
    verdict: Verdict
    value: float | None
    limit: float
    reason: str


@dataclass(frozen=True, slots=True)
class Band:
    """How large a deviation may be: at most `passes` is a PASS, above `fails` a FAIL, between the two a WARN."""

    passes: float
    fails: float

    def grade(self, size: float) -> Verdict:
        """Return the verdict on a deviation, which is taken without its sign; NaN is no PASS."""
        return "PASS" if abs(size) <= self.passes else "WARN" if abs(size) <= self.fails else "FAIL"

    def wider(self, by: float) -> Band:
        """Return the band that also takes in what counting itself leaves open."""
        return Band(self.passes + by, self.fails + by)


@dataclass(frozen=True, slots=True)
class CheckEntry:
    """One row of the table of checks.

    Attributes
    ----------
    name : str
        As it is printed, and named in a cell's row.
    compares : str
        What is held against what, and why.
    passes, fails : str
        The tolerance in words; what lies between the two is a WARN.
    remedy : str
        What to do where it does not pass.
    bears_on : frozenset of str
        The `ASPECTS` of a cell that cannot be relied on where it fails. Empty: it speaks of a whole lab.
    ask : callable, optional
        The check of one cell; None: it needs several. It returns None for a cell that it does not apply to.
    """

    name: str
    compares: str
    passes: str
    fails: str
    remedy: str
    bears_on: frozenset[Aspect] = frozenset()
    ask: Callable[[CellWindow], Check | None] | None = None


NO_RUNNING_COUNT = "running count of tokens, so nothing is known of steps"
"""What a server that gives usage only at an answer's end lacks."""


def not_offered(name: str, limit: float, what: str) -> Check:
    """Return the WARN of a check that the server gives nothing for."""
    return Check(name, "WARN", None, limit, f"not offered: the server gives no {what}")


def graded(name: str, band: Band, size: float, reason: str) -> Check:
    """Return a check of a deviation by its band."""
    return Check(name, band.grade(size), size, band.passes, reason)


def border_rows(cut: CellWindow) -> float:
    """Return by how many row-steps a server's counters may differ from the events between the same two readings.

    A step is counted when it ends and read here a moment later, so at each of the two readings one step of each row in
    flight may be on the other side.
    """
    return float(cut.record.asked.concurrency)
