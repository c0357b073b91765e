"""How many tokens each pass of a request keeps: drawn from a stream of its own, before anything is served.

A request's draws do not depend on what is served beside it, so all of them are made at once. The generator is
mulberry32 (public domain, Tommy Ettinger): its state after n steps is the seed plus n times a constant, so the n-th
number is a pure function of n. Request r starts at (seed + 2654435761 r) mod 2^32, as in the public simulator
*Disaggregated_Inference_Sim*.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from speclab.roofline.speculation import accepted_counts

_GOLDEN, _KNUTH, _MASK = 0x6D2B79F5, 2654435761, 0xFFFFFFFF


class Bursts(NamedTuple):
    """The decode passes of one request, in order."""

    kept: NDArray[np.int64]
    """Tokens that each pass adds to the answer; their sum is what was to be decoded."""
    drafted: NDArray[np.bool_]
    """Whether the pass verified a draft."""
    accepted: NDArray[np.int64]
    """Drafted tokens that the target agreed with, before the answer's end cut them off."""


def uniforms(seed: int, request: int, count: int, skip: int = 0) -> NDArray[np.float64]:
    """Return numbers of a request's stream, from [0, 1).

    Parameters
    ----------
    seed, request : int
        Which stream.
    count : int
        How many.
    skip : int
        How many to skip before them.

    Returns
    -------
    ndarray of float, shape (count,)
    """
    start = (seed + request * _KNUTH) & _MASK
    steps = np.arange(skip + 1, skip + count + 1, dtype=np.uint64)
    a = (np.uint64(start) + steps * np.uint64(_GOLDEN)).astype(np.uint32)
    t = (a ^ (a >> np.uint32(15))) * (a | np.uint32(1))
    t = (t + (t ^ (t >> np.uint32(7))) * (t | np.uint32(61))) ^ t
    return np.asarray((t ^ (t >> np.uint32(14))) / 2.0**32, dtype=np.float64)


def flat_bursts(seed: int, request: int, tokens: int, k: int, alpha: float) -> Bursts:
    """Return the passes in which a request decodes `tokens` tokens, each draft accepted with probability `alpha`.

    A pass draws numbers until one is at least `alpha` or `k` were below; the accepted drafts and one token of
    the target's own are kept, but no more than are still to be decoded.
    """
    # one number decides one draft; no pass uses more than it keeps, plus the one that was rejected
    agreed = uniforms(seed, request, tokens + k + 1) < alpha
    refusals = np.flatnonzero(~agreed)
    runs = np.diff(refusals, prepend=-1) - 1
    tail = len(agreed) - (refusals[-1] + 1 if len(refusals) else 0)
    runs = np.append(runs, tail)  # the run that the end of the numbers cuts off: its whole passes count
    whole, rest = np.divmod(runs, k)
    accepted = np.full(int(whole.sum()) + len(runs), k, dtype=np.int64)
    accepted[np.cumsum(whole + 1) - 1] = rest
    return _capped(accepted, np.ones(len(accepted), dtype=np.bool_), tokens)


def curve_bursts(seed: int, request: int, tokens: int, marginal: Sequence[float], draft_rate: float = 1.0) -> Bursts:
    """Return the passes in which a request decodes `tokens` tokens, with acceptance by position.

    Parameters
    ----------
    seed, request : int
        Which stream.
    tokens : int
        Tokens to decode.
    marginal : sequence of float
        Marginal acceptance by position.
    draft_rate : float
        Share of passes in which the request has a draft.
    """
    drafted, accepted = accepted_counts(uniforms(seed, request, tokens), marginal, draft_rate)
    return _capped(accepted, drafted, tokens)


def plain(tokens: int) -> Bursts:
    """Return the passes of a request without drafts."""
    return Bursts(np.ones(tokens, dtype=np.int64), np.zeros(tokens, dtype=np.bool_), np.zeros(tokens, dtype=np.int64))


def _capped(accepted: NDArray[np.int64], drafted: NDArray[np.bool_], tokens: int) -> Bursts:
    written = np.cumsum(accepted + 1)
    passes = int(np.searchsorted(written, tokens)) + 1 if tokens else 0
    kept = accepted[:passes] + 1
    if passes:
        kept[-1] -= written[passes - 1] - tokens
    return Bursts(kept, drafted[:passes], accepted[:passes])
