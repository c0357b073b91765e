"""A cell cut at its window: dropped by time, counted by event."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from speclab.metrics.counters import gained
from speclab.metrics.events import Events, deliveries, flatten
from speclab.record.cell import Cell
from speclab.record.schema import CellRecord


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time, in seconds after the load's start; its first moment belongs to it, its last does not."""

    opens_s: float
    closes_s: float

    @property
    def length_s(self) -> float:
        """Length, s."""
        return self.closes_s - self.opens_s

    def holds(self, time_s: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which times fall inside; NaN does not."""
        return (time_s >= self.opens_s) & (time_s < self.closes_s)

    def overlap_s(self, start_s: NDArray[np.float64], end_s: NDArray[np.float64]) -> float:
        """Return the time that all spans from `start_s` to `end_s` together spend inside, s."""
        inside = np.minimum(end_s, self.closes_s) - np.maximum(start_s, self.opens_s)
        return float(np.clip(inside, 0.0, None).sum())


@dataclass(frozen=True)
class CellWindow:
    """What every metric is taken from.

    Attributes
    ----------
    record : CellRecord
        What was asked, and what happened.
    window : Window
        The measured stretch.
    requests : pd.DataFrame
        All requests of the cell, with two more columns: ``first_s`` and ``last_s``, times of the first and the last
        event (seconds after the load's start; NaN without events).
    all_events : Events
        Every event of the cell.
    events : Events
        Those inside the window, whichever request they belong to: a long answer that crosses a border gives the tokens
        that came inside, no more and no less. Warm-up answers count here, because they share the server's steps.
    decode : Events
        Those of `events` that are decode steps.
    deliveries : Events
        All of the cell, for sums over time alone: `all_events`, or where the server keeps no running count of tokens
        (there are no events then) the chunks of each answer with even shares of its tokens.
    """

    record: CellRecord
    window: Window
    requests: pd.DataFrame
    all_events: Events
    events: Events
    decode: Events
    deliveries: Events

    @cached_property
    def ended(self) -> pd.DataFrame:
        """Measured requests that ended inside the window, without error and with the server's usage."""
        table = self.requests
        inside = self.window.holds(table["end_s"].to_numpy(dtype=np.float64))
        return table[inside & ~table["warm_up"] & table["error"].isna() & table["output_tokens"].notna()]

    @property
    def counted(self) -> pd.DataFrame:
        """Measured requests that lie inside the window as a whole: what the report counts."""
        ended = self.ended
        return ended[ended["start_s"] >= self.window.opens_s]

    @cached_property
    def between_readings(self) -> Events:
        """Deliveries between the first and the last reading of the counters; what these are held against."""
        gain = gained(self.record)
        if gain is None:
            return self.deliveries.where(np.zeros(len(self.deliveries), dtype=np.bool_))
        return self.delivered(Window(gain.from_s, gain.to_s))

    @property
    def tells_tokens_of_events(self) -> bool:
        """Whether the server said how many tokens each event holds; else findings about steps cannot be had."""
        return len(self.all_events) > 0 or len(self.deliveries) == 0

    def delivered(self, window: Window) -> Events:
        """Return the deliveries inside a window."""
        return self.deliveries.where(window.holds(self.deliveries.time_s))


def cut(cell: Cell) -> CellWindow:
    """Return a cell cut at its window."""
    window = Window(*cell.record.window_s)
    events = flatten(cell.requests)
    came = deliveries(cell.requests, events)
    first_s, last_s = (np.full(len(cell.requests), np.nan) for _ in range(2))
    firsts = np.flatnonzero(came.is_first)
    lasts = np.append(firsts[1:], len(came)) - 1 if len(firsts) else firsts
    first_s[came.row[firsts]] = came.time_s[firsts]
    last_s[came.row[firsts]] = came.time_s[lasts]
    requests = cell.requests.assign(first_s=first_s, last_s=last_s)
    inside = window.holds(events.time_s)
    decode = events.where(inside & ~events.is_first)
    return CellWindow(cell.record, window, requests, events, events.where(inside), decode, came)
