"""How long a user waits: for a token, and for a step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from speclab.metrics.window import CellWindow

MS_PER_S = 1e3


def times_per_output_token(cut: CellWindow) -> NDArray[np.float64]:
    """Return each ended answer's time per output token (TPOT), ms, shape (answers,).

    (last token - first token) / (output tokens - 1), output tokens from the server's usage. Answers of one token have
    no such time and are left out; `one_token_answers` counts them.
    """
    ended = cut.ended
    several = ended[(ended["output_tokens"] > 1) & ended["first_s"].notna()]
    decode_ms = (several["last_s"] - several["first_s"]).to_numpy(dtype=np.float64) * MS_PER_S
    times: NDArray[np.float64] = decode_ms / (several["output_tokens"].to_numpy(dtype=np.float64) - 1)
    return times


def one_token_answers(cut: CellWindow) -> int:
    """Return how many ended answers hold one token (or none), and so have no time per output token."""
    return int((cut.ended["output_tokens"] <= 1).sum())


def time_per_output_token(cut: CellWindow) -> float | None:
    """Return the mean time per output token (TPOT), ms; None where no answer ended.

    The mean weighs each answer by its tokens (all decode time / all decode tokens). Little's law holds for tokens
    with this weight: a token's rate times a token's time is the number of answers being written. A mean over answers
    would let short answers speak for tokens that they do not have.
    """
    ended = cut.ended
    several = ended[(ended["output_tokens"] > 1) & ended["first_s"].notna()]
    if several.empty:
        return None
    tokens = float(several["output_tokens"].sum()) - len(several)
    return float((several["last_s"] - several["first_s"]).sum()) * MS_PER_S / tokens


def step_gaps(cut: CellWindow) -> NDArray[np.float64]:
    """Return the gaps between consecutive events of a request (ITL), ms, for events inside the window, shape (gaps,).

    One event is one step of this row and holds 1..k+1 tokens, so a gap is a step's time and not a token's. A gap
    belongs to the event that ends it. Answers that the cell's end cut off count too.
    """
    gaps: NDArray[np.float64] = cut.decode.gap_s * MS_PER_S
    return gaps


def step_gap(cut: CellWindow, share: float) -> float | None:
    """Return the gap (ITL) that a `share` (0..1) of the gaps do not exceed, ms; None without gaps."""
    return _quantile(step_gaps(cut), share)


def time_per_output_token_quantile(cut: CellWindow, share: float) -> float | None:
    """Return the time per output token that a `share` (0..1) of the answers do not exceed, ms; None without answers."""
    return _quantile(times_per_output_token(cut), share)


def _quantile(values: NDArray[np.float64], share: float) -> float | None:
    return float(np.quantile(values, share)) if len(values) else None
