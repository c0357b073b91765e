"""A cell's token deliveries as flat arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

US_PER_S = 1e6


@dataclass(frozen=True, slots=True)
class Events:
    """Deliveries of tokens, one element each, requests in the order of sending and time order inside a request.

    Attributes
    ----------
    row : ndarray of int64, shape (events,)
        Position of the request in the cell's request table.
    time_s : ndarray of float64, shape (events,)
        Seconds after the load's start.
    tokens : ndarray of int64, shape (events,)
        Tokens delivered, at least 1.
    is_first : ndarray of bool, shape (events,)
        The request's first delivery, which ends its prefill. Every other delivery is a decode step of its row.
    gap_s : ndarray of float64, shape (events,)
        Seconds since the delivery before it of the same request; NaN where ``is_first``.
    """

    row: NDArray[np.int64]
    time_s: NDArray[np.float64]
    tokens: NDArray[np.int64]
    is_first: NDArray[np.bool_]
    gap_s: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.row)

    def where(self, mask: NDArray[np.bool_]) -> Events:
        """Return the events for which `mask`, shape (events,), is true; their gaps stay as they were."""
        return Events(self.row[mask], self.time_s[mask], self.tokens[mask], self.is_first[mask], self.gap_s[mask])

    @property
    def decode(self) -> Events:
        """The events that are decode steps."""
        return self.where(~self.is_first)


def flatten(requests: pd.DataFrame) -> Events:
    """Return all events of a cell.

    Parameters
    ----------
    requests : pd.DataFrame
        As in `speclab.record.schema.REQUEST_COLUMNS`.

    Returns
    -------
    Events
        Without deliveries of zero tokens: they carry no step's result.
    """
    counts = np.array([len(offsets) for offsets in requests["event_us"]], dtype=np.int64)
    row = np.repeat(np.arange(len(requests), dtype=np.int64), counts)
    after_us = _joined(requests["event_us"])
    tokens = _joined(requests["event_tokens"])
    if len(tokens) and tokens.min() < 1:
        full = tokens > 0
        row, after_us, tokens = row[full], after_us[full], tokens[full]
    is_first = np.ones(len(row), dtype=np.bool_)
    is_first[1:] = row[1:] != row[:-1]
    # the gap is taken between whole microseconds: adding start_s first would cost digits
    gap_s = np.full(len(row), np.nan)
    gap_s[1:] = np.diff(after_us) / US_PER_S
    gap_s[is_first] = np.nan
    start_s = requests["start_s"].to_numpy(dtype=np.float64)
    return Events(row, start_s[row] + after_us / US_PER_S, tokens, is_first, gap_s)


def _joined(column: pd.Series) -> NDArray[np.int64]:
    parts = [np.asarray(part, dtype=np.int64) for part in column]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
