"""How much of the drafts the target takes, conditional on a draft and over all steps."""

from __future__ import annotations

import pandas as pd
from scipy import stats

from speclab.metrics.counters import gained
from speclab.metrics.window import CellWindow

COLUMNS = (
    "position",
    "drafts",
    "accepted",
    "marginal",
    "marginal_low",
    "marginal_high",
    "reached",
    "conditional",
    "conditional_low",
    "conditional_high",
)


def reported_acceptance_length(cut: CellWindow) -> float | None:
    """Return 1 + accepted/drafts from the server's counters, tokens; None where not offered or nothing was drafted.

    This is the figure that vLLM prints. It is conditional on having drafted: a step for which the drafter found
    nothing is in neither counter (vllm-project/vllm#24344 prints 4.59 where `tokens_per_step` is 2.96). Break-even
    needs the latter.
    """
    gain = gained(cut.record)
    if gain is None or not gain.drafts or gain.accepted_tokens is None:
        return None
    return 1.0 + gain.accepted_tokens / gain.drafts


def draft_tokens_per_draft(cut: CellWindow) -> float | None:
    """Return the mean length of a draft, tokens; None where not offered. It never sees the steps without a draft."""
    gain = gained(cut.record)
    if gain is None or not gain.drafts or gain.draft_tokens is None:
        return None
    return gain.draft_tokens / gain.drafts


def tokens_per_step(cut: CellWindow) -> float | None:
    """Return decode tokens / decode steps of the rows inside the window, tokens; None without decode steps.

    Unconditional: each decode event is one step of its row, drafted or not, on a server that streams each step at once.
    """
    decode = cut.events.decode
    return float(decode.tokens.sum()) / len(decode) if len(decode) else None


def draft_coverage(cut: CellWindow) -> float | None:
    """Return the share of row-steps that had a draft: drafts counted / decode events between the same two readings.

    None where the server counts no drafts. It may pass 1 by a step's worth: the server counts a step before it
    arrives here.
    """
    gain = gained(cut.record)
    steps = len(cut.between_readings.decode)
    return None if gain is None or gain.drafts is None or not steps else gain.drafts / steps


def acceptance_by_position(cut: CellWindow) -> pd.DataFrame:
    """Return acceptance by draft position, `COLUMNS`; no rows where the server does not offer it.

    Positions count from 0, as in vLLM's counters, and end at the k that the arm drafts: a server may list positions
    beyond.
    """
    gain = gained(cut.record)
    speculation = cut.record.asked.speculation
    if gain is None or speculation is None or not gain.drafts or gain.accepted_by_position is None:
        return pd.DataFrame(columns=list(COLUMNS))
    accepted = gain.accepted_by_position[: speculation.num_speculative_tokens]
    return with_intervals(gain.drafts, accepted)


def with_intervals(drafts: float, accepted: tuple[float, ...]) -> pd.DataFrame:
    """Return marginal and conditional acceptance with 95% Wilson intervals.

    Parameters
    ----------
    drafts : float
        Drafts counted.
    accepted : tuple of float
        For each position, drafts whose tokens up to this position were all accepted.

    Returns
    -------
    pd.DataFrame
        `COLUMNS`: ``marginal`` = accepted_i / drafts, ``conditional`` = accepted_i / accepted_(i-1), with ``reached`` =
        accepted_(i-1), the drafts of which position i was really tried; null where nothing reached the position. The
        intervals take drafts as independent. Drafts of one text are not, so the truth is a little wider.
    """
    rows = []
    reached = drafts
    for position, taken in enumerate(accepted):
        rows.append((position, drafts, taken, *_wilson(taken, drafts), reached, *_wilson(taken, reached)))
        reached = taken
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _wilson(successes: float, trials: float) -> tuple[float | None, float | None, float | None]:
    if trials <= 0:
        return None, None, None
    # a counter read between its parts can pass its total by a few
    successes = min(max(successes, 0.0), trials)
    interval = stats.binomtest(round(successes), round(trials)).proportion_ci(method="wilson")
    return successes / trials, float(interval.low), float(interval.high)
