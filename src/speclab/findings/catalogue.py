"""The catalogue of findings: one row each, and everything else that is known by a finding's name follows from it.

How fast tokens came, and which tokens they were, are two questions. A machine that slowed down halfway through a window
spoils the first and leaves the second alone: the same text is accepted or not at any speed. A server that streams a
step in pieces spoils every figure of a step, and no throughput. So each finding says what it rests on, each check what
it bears on (`speclab.metrics.checks.base.ASPECTS`), and a finding requires the checks that bear on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from speclab.findings.between import OF_AN_ARM
from speclab.metrics.checks.base import Aspect
from speclab.metrics.checks.table import OF_A_CELL

Of = Literal["cell", "pair", "curve", "texts", "drafter", "position"]

PACE: frozenset[Aspect] = frozenset({"pace"})
ANSWERS: frozenset[Aspect] = frozenset({"pace", "answers"})
STEPS: frozenset[Aspect] = frozenset({"pace", "steps"})
TEXT: frozenset[Aspect] = frozenset({"text"})
COUNTERS: frozenset[Aspect] = frozenset({"counters"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Attributes
    ----------
    name, unit : str
        A finding of one cell is called as its function in `speclab.metrics.summary.METRICS`.
    words : str
        What it is, for a figure's axis or a table.
    of : str
        ``cell``; ``pair``, a cell against its baseline's; ``curve``, an arm over concurrency; ``texts``, prompts
        against themselves or each other; ``drafter``, at each k; ``position``, by place in the draft.
    sums : mapping of str to int
        A finding of a cell as a product of sums over blocks (`speclab.metrics.blocks.COLUMNS`; ``drafted_tokens`` are
        drafts + accepted), each to its power: what its interval is resampled from. Without them only repeats give one.
    times : (str, str), optional
        A finding of a cell that is the product of two others.
    over : (str, str), optional
        A finding of a pair that is a ratio: the arm's figure, and the figure of its baseline below it.
    less : (str, str), optional
        A finding of a pair that is a difference, resampled as the ratio of the same two figures.
    per_k : bool
        Whether it is divided by the arm's k.
    rests_on : frozenset of str
        The `speclab.metrics.checks.base.ASPECTS` of a cell that it is made of.
    drafts_only : bool
        Whether an arm without drafts does not have it.
    """

    name: str
    unit: str
    words: str
    of: Of = "cell"
    sums: Mapping[str, int] = field(default_factory=dict)
    times: tuple[str, str] | None = None
    over: tuple[str, str] | None = None
    less: tuple[str, str] | None = None
    per_k: bool = False
    rests_on: frozenset[Aspect] = PACE
    drafts_only: bool = False

    @property
    def required_checks(self) -> frozenset[str]:
        """Names of the checks that a cell must have passed to count."""
        return frozenset(entry.name for entry in (*OF_A_CELL, *OF_AN_ARM) if entry.bears_on & self.rests_on)


_THROUGHPUT, _USER, _STEP = "system_throughput", "user_throughput", "step_time"
_TPOT, _IMPLIED = "time_per_output_token", "implied_step_time"

CATALOGUE = (
    # pooled by token, so a long answer weighs more than a short one
    Finding("speed_up", "x", "speed-up", "pair", over=(_THROUGHPUT, _THROUGHPUT)),
    # each request weighs the same: a few that speculate very well lift it above the pooled one
    Finding("speed_up_mean_of_requests", "x", "speed-up, mean of requests", "pair", over=(_USER, _USER),
            rests_on=ANSWERS),
    Finding("crossover", "requests", "where the speed-up falls to 1", "curve"),
    Finding(_THROUGHPUT, "tok/s", "throughput of the server", sums={"tokens": 1, "seconds": -1}),
    Finding("activity_throughput", "tok/s", "throughput of counted requests"),
    Finding(_USER, "tok/s", "speed of one user", sums={"answer_rates": 1, "answers": -1}, rests_on=ANSWERS),
    Finding(_TPOT, "ms", "time per output token", sums={"answer_ms": 1, "answer_tokens": -1}, rests_on=ANSWERS),
    Finding("time_per_output_token_p99", "ms", "time per output token, p99", rests_on=ANSWERS),
    Finding("step_gap_p50", "ms", "gap between steps, median", rests_on=STEPS),
    Finding("step_gap_p99", "ms", "gap between steps, p99", rests_on=STEPS),
    Finding(_STEP, "ms", "a step, by its events", sums={"gap_ms": 1, "steps": -1}, rests_on=STEPS),
    Finding(
        "tokens_per_step", "tokens", "tokens per step, all steps",
        sums={"decode_tokens": 1, "steps": -1}, rests_on=TEXT,
    ),
    # all gaps over all their tokens: into how many steps they were cut makes no difference
    Finding("ms_per_accepted_token", "ms", "time per accepted token", sums={"gap_ms": 1, "decode_tokens": -1},
            rests_on=ANSWERS),
    # to be held against tokens_per_step, never against the acceptance length that a server reports
    Finding("break_even_length", "tokens", "break-even, by the steps", "pair", over=(_STEP, _STEP), rests_on=STEPS),
    # all that the arm adds: drafting, verifying k more tokens a row, lost overlap; drafting alone only at one in flight
    Finding(
        "drafting_time", "ms", "what the arm adds to a step", "pair", less=(_STEP, _STEP), rests_on=STEPS
    ),
    Finding(
        "drafting_time_per_position", "ms", "what a draft position adds to a step", "pair",
        less=(_STEP, _STEP), per_k=True, drafts_only=True, rests_on=STEPS,
    ),
    Finding(
        "reported_acceptance_length", "tokens", "tokens per drafted step, by the counters",
        rests_on=COUNTERS, drafts_only=True,
    ),
    Finding(
        "draft_coverage", "ratio", "steps with a draft",
        sums={"drafts": 1, "steps": -1}, rests_on=COUNTERS | TEXT, drafts_only=True,
    ),
    Finding(
        "draft_tokens_per_draft", "tokens", "length of a draft", rests_on=COUNTERS, drafts_only=True
    ),
    Finding(
        _IMPLIED, "ms", "a step, if each had a draft",
        sums={"answer_ms": 1, "answer_tokens": -1, "drafted_tokens": 1, "drafts": -1},
        times=(_TPOT, "reported_acceptance_length"), drafts_only=True, rests_on=ANSWERS | COUNTERS,
    ),
    Finding("implied_break_even_length", "tokens", "break-even, if each step had a draft", "pair",
            over=(_IMPLIED, _TPOT), rests_on=ANSWERS | COUNTERS),
    Finding("occupancy", "requests", "answers being written, by Little's law", rests_on=ANSWERS),
    Finding("activity_occupancy", "requests", "answers being written, by counted requests", rests_on=ANSWERS),
    Finding("in_flight", "requests", "requests in flight"),
    Finding("answering", "requests", "answers being written"),
    Finding("counter_residual", "ratio", "tokens counted but not received"),
    Finding("acceptance_drift", "ratio", "largest move of acceptance", "curve", rests_on=COUNTERS),
    Finding("acceptance_trend", "ratio", "acceptance over concurrency", "texts", rests_on=TEXT),
    Finding("acceptance_over_answer", "ratio", "acceptance over the answer", "texts", rests_on=TEXT),
    Finding("acceptance_over_prompt", "ratio", "acceptance by the prompt's length", "texts",
            rests_on=TEXT),
    Finding("tokens_per_step_at_k", "tokens", "tokens per step at each k", "drafter", rests_on=TEXT),
    Finding("ms_per_token_at_k", "ms", "time per token at each k", "drafter", rests_on=STEPS | TEXT),
    Finding("best_k", "tokens", "the best k", "drafter", rests_on=STEPS | TEXT),
    Finding("acceptance_by_position", "ratio", "accepted up to a position", "position",
            rests_on=COUNTERS),
    Finding("acceptance_by_position_conditional", "ratio", "accepted where reached", "position",
            rests_on=COUNTERS),
)  # fmt: skip
"""Every finding, in the order of the table that ``speclab findings`` prints."""

BY_NAME = {finding.name: finding for finding in CATALOGUE}

RESAMPLED = {finding.name: finding for finding in CATALOGUE if finding.sums}
"""Findings of a cell whose interval comes from the blocks of its window."""

PAIRED_FIGURES = sorted({theirs for finding in CATALOGUE for _, theirs in filter(None, (finding.over, finding.less))})
"""Figures of the baseline that something is held against."""
