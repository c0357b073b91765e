"""A cell's window cut into blocks of equal length: what an interval over time is resampled from."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from speclab.metrics.latency import MS_PER_S
from speclab.metrics.window import CellWindow

BLOCKS = 10
"""Blocks of a window in the tables; findings join neighbours where that is too fine (`speclab.findings.intervals`)."""

COLUMNS = (
    "block",
    "seconds",
    "tokens",
    "decode_tokens",
    "steps",
    "gap_ms",
    "answers",
    "answer_tokens",
    "answer_ms",
    "answer_rates",
    "drafts",
    "accepted",
)


def blocks(cut: CellWindow, count: int = BLOCKS) -> pd.DataFrame:
    """Return the sums over each of `count` equal parts of the window, in the order of time.

    Each metric of a cell that an interval is wanted for is a ratio of two of these sums over all blocks:
    `system_throughput` = tokens / seconds, `step_time` = gap_ms / steps, `tokens_per_step` = decode_tokens / steps,
    `time_per_output_token` = answer_ms / answer_tokens, `user_throughput` = answer_rates / answers.

    Returns
    -------
    pd.DataFrame
        `COLUMNS`: ``tokens`` of all events, ``decode_tokens`` of those that are decode steps of a row, ``steps``
        (row-steps) and the ``gap_ms`` before them; ``answers`` that ended in the block and have a time per output
        token, with their decode tokens, decode time and the sum of their speeds (tok/s); ``drafts`` and ``accepted``
        draft tokens by the server's counters, drawn straight between its readings (null where not offered).
    """
    borders_s = np.linspace(cut.window.opens_s, cut.window.closes_s, count + 1)

    def summed(time_s: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        inside = cut.window.holds(time_s)
        place = np.searchsorted(borders_s, time_s[inside], side="right") - 1
        within = None if weights is None else weights[inside]
        return np.bincount(place.clip(0, count - 1), weights=within, minlength=count).astype(np.float64)

    ended = cut.ended
    several = ended[(ended["output_tokens"] > 1) & ended["first_s"].notna()]
    ends_s = several["end_s"].to_numpy(np.float64)
    answer_ms = (several["last_s"] - several["first_s"]).to_numpy(np.float64) * MS_PER_S
    answer_tokens = several["output_tokens"].to_numpy(np.float64) - 1
    rates = np.divide(answer_tokens * MS_PER_S, answer_ms, out=np.zeros_like(answer_ms), where=answer_ms > 0)
    decode = cut.decode
    return pd.DataFrame(
        {
            "block": np.arange(count),
            "seconds": np.diff(borders_s),
            "tokens": summed(cut.deliveries.time_s, cut.deliveries.tokens.astype(np.float64)),
            "decode_tokens": summed(decode.time_s, decode.tokens.astype(np.float64)),
            "steps": summed(decode.time_s),
            "gap_ms": summed(decode.time_s, decode.gap_s * MS_PER_S),
            "answers": summed(ends_s[answer_ms > 0]),
            "answer_tokens": summed(ends_s, answer_tokens),
            "answer_ms": summed(ends_s, answer_ms),
            "answer_rates": summed(ends_s, rates),
            "drafts": _counted(cut, "drafts", borders_s),
            "accepted": _counted(cut, "accepted_tokens", borders_s),
        },
        columns=list(COLUMNS),
    )


def _counted(cut: CellWindow, counter: str, borders_s: NDArray[np.float64]) -> NDArray[np.float64]:
    readings = cut.record.readings
    at_s = [reading.at_s for reading in readings if getattr(reading, counter) is not None]
    values = [float(getattr(reading, counter)) for reading in readings if getattr(reading, counter) is not None]
    if len(values) < 2:
        return np.full(len(borders_s) - 1, np.nan)
    return np.diff(np.interp(borders_s, at_s, values))
