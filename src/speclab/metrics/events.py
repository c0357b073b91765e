"""A cell's token deliveries as flat arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

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
        Tokens delivered, at least 1; float64 shares of them where only an answer's total is known (`deliveries`).
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


def deliveries(requests: pd.DataFrame, events: Events) -> Events:
    """Return all events of a cell whose server says only how many tokens a whole answer holds, or `events` themselves.

    Such answers have events of zero tokens (`speclab.engines.base.UNTOLD`). The first then stands for one token, which
    its prefill gave, and the others for even shares of the rest; those of an answer that did not end, for the mean
    share of those that did. Sums over a window are exact but for the answers that cross its borders; a single event
    says nothing.

    Parameters
    ----------
    requests : pd.DataFrame
        As in `speclab.record.schema.REQUEST_COLUMNS`.
    events : Events
        From `flatten`.
    """
    counts = np.array([len(offsets) for offsets in requests["event_us"]], dtype=np.int64)
    if len(events) or not counts.any():
        return events
    tokens = requests["output_tokens"].where(requests["error"].isna()).to_numpy(dtype=np.float64, na_value=np.nan)
    several = (counts > 1) & ~np.isnan(tokens)
    if not several.any():
        return events
    usual = (tokens[several] - 1).sum() / (counts[several] - 1).sum()
    share = np.where(several, (tokens - 1) / np.maximum(counts - 1, 1), usual)
    ones = pd.Series([np.ones(count, dtype=np.int64) for count in counts], index=requests.index, dtype=object)
    came = flatten(requests.assign(event_tokens=ones))
    alone = came.is_first & (counts == 1)[came.row] & ~np.isnan(tokens)[came.row]
    shares = np.where(came.is_first, 1.0, share[came.row])
    return replace(came, tokens=cast("NDArray[np.int64]", np.where(alone, tokens[came.row], shares)))


def _joined(column: pd.Series) -> NDArray[np.int64]:
    parts = [np.asarray(part, dtype=np.int64) for part in column]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
