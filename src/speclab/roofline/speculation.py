"""Tokens that a pass gains by speculation, in closed form and as draws.

Acceptance by position is *marginal* throughout: entry i is the share of drafts whose tokens 1..i+1 were all accepted.
Sources: Leviathan et al., arXiv:2211.17192 v2 (equation 1, theorems 3.8 and 3.11).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def flat_marginal(alpha: float, k: int) -> tuple[float, ...]:
    """Return the marginal acceptance of k positions that each accept with probability `alpha`, independently."""
    return tuple(alpha**position for position in range(1, k + 1))


def tokens_per_pass(marginal: Sequence[float], draft_rate: float = 1.0) -> float:
    """Return the expected tokens of one row-step: one from the target, and the accepted drafts where there is a draft.

    Parameters
    ----------
    marginal : sequence of float
        Marginal acceptance by draft position.
    draft_rate : float
        Share of row-steps that have a draft.
    """
    return 1 + draft_rate * sum(marginal)


def tokens_per_pass_flat(alpha: float, k: int) -> float:
    """Return the expected tokens of one pass with flat acceptance: (1 - alpha^(k+1)) / (1 - alpha), or k + 1 at 1.

    Source: Leviathan et al., equation 1.
    """
    return float(k + 1) if alpha == 1 else (1 - alpha ** (k + 1)) / (1 - alpha)


def speed_up(tokens: float, k: int, draft_cost: float) -> float:
    """Return the speed-up while verifying costs no more than decoding: tokens / (k c + 1).

    Parameters
    ----------
    tokens : float
        Expected tokens per pass.
    k : int
        Draft positions.
    draft_cost : float
        c: time of one draft position in steps of the target. Source: Leviathan et al., theorem 3.8.
    """
    return tokens / (k * draft_cost + 1)


def operations_factor(tokens: float, k: int, draft_operations: float) -> float:
    """Return how many times the baseline's operations a token takes: (k c + k + 1) / tokens.

    `draft_operations` is the drafter's operations per token over the target's. Source: Leviathan et al., theorem 3.11.
    """
    return (k * draft_operations + k + 1) / tokens


def conditional(marginal: Sequence[float]) -> tuple[float, ...]:
    """Return acceptance by position given that all before it were accepted; 0 after a position that never is."""
    before = (1.0, *marginal[:-1])
    return tuple(here / last if last else 0.0 for here, last in zip(marginal, before, strict=True))


def accepted_counts(
    uniforms: NDArray[np.float64], marginal: Sequence[float], draft_rate: float = 1.0
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Turn one uniform number for each row-step into whether it had a draft and how many drafts were accepted.

    At least i drafts are accepted where the number is below draft_rate x marginal[i - 1]: the marginal curve exactly,
    hence the conditional acceptance at each position too.

    Parameters
    ----------
    uniforms : ndarray of float, shape (n,)
        Draws from [0, 1).
    marginal : sequence of float
        Marginal acceptance by position, falling; empty where nothing is drafted.
    draft_rate : float
        Share of row-steps that have a draft.

    Returns
    -------
    drafted : ndarray of bool, shape (n,)
    accepted : ndarray of int, shape (n,)
        0..k; 0 where there was no draft.
    """
    limits = draft_rate * np.asarray(marginal, dtype=np.float64)
    drafted = uniforms < (draft_rate if len(limits) else 0.0)
    accepted = len(limits) - np.searchsorted(limits[::-1], uniforms, side="right")
    return drafted, accepted
