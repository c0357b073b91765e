"""How much of the drafts the target takes, conditional on a draft and over all steps."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from speclab.metrics.counters import gained
from speclab.metrics.window import CellWindow

Z_95 = float(special.ndtri(0.975))
"""Half-width of a 95% interval in standard errors."""

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
    decode = cut.decode
    return float(decode.tokens.sum()) / len(decode) if len(decode) else None


def draft_coverage(cut: CellWindow) -> float | None:
    """Return the share of row-steps that had a draft: drafts counted / decode events between the same two readings.

    None where the server counts no drafts, or does not say what an event holds. It may pass 1 by a step's worth: the
    server counts a step before it arrives here.
    """
    gain = gained(cut.record)
    steps = len(cut.between_readings.decode) if cut.tells_tokens_of_events else 0
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
    accepted = np.array(gain.accepted_by_position[: speculation.num_speculative_tokens])
    reached = np.concatenate([[gain.drafts], accepted[:-1]])
    table = with_intervals(np.full(len(accepted), gain.drafts), accepted, reached)
    table.insert(0, "position", np.arange(len(accepted)))
    return table


def with_intervals(
    drafts: NDArray[np.float64], accepted: NDArray[np.float64], reached: NDArray[np.float64]
) -> pd.DataFrame:
    """Return marginal and conditional acceptance with 95% Wilson intervals.

    Parameters
    ----------
    drafts : ndarray, shape (rows,)
        Drafts counted.
    accepted : ndarray, shape (rows,)
        Drafts whose tokens up to the row's position were all accepted.
    reached : ndarray, shape (rows,)
        Drafts whose tokens before the row's position were all accepted: those in which the position was really tried.

    Returns
    -------
    pd.DataFrame
        ``drafts``, ``accepted``, ``marginal`` = accepted / drafts, ``reached``, ``conditional`` = accepted / reached,
        and their bounds; null where nothing was tried. The intervals take drafts as independent. Drafts of one text
        are not, so the truth is a little wider.
    """
    table = pd.DataFrame({"drafts": drafts, "accepted": accepted, "reached": reached})
    for share, trials in (("marginal", drafts), ("conditional", reached)):
        table[share], table[f"{share}_low"], table[f"{share}_high"] = wilson(accepted, trials)
    return table[list(COLUMNS[1:])]


def wilson(
    successes: NDArray[np.float64], trials: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return shares and their 95% Wilson score intervals, as ``scipy.stats.binomtest`` has them, for whole arrays.

    Source: E. B. Wilson, Journal of the American Statistical Association 22 (1927) 209-212. NaN where there are no
    trials.
    """
    n = np.where(trials > 0, trials, np.nan)
    # counters that are read one after the other can pass their total by a few
    share = np.clip(successes, 0, trials) / n
    spread = Z_95 * np.sqrt(share * (1 - share) / n + Z_95**2 / (4 * n**2))
    middle, scale = share + Z_95**2 / (2 * n), 1 + Z_95**2 / n
    # at a share of 0 or 1 the bound is the share itself, and rounding would put it a last digit inside
    return share, np.clip((middle - spread) / scale, 0.0, share), np.clip((middle + spread) / scale, share, 1.0)
