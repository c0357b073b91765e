"""The rows of one instance that are being decoded, pass by pass.

Two kinds. Where every pass speculates, or none does, a row's progress is known when it joins: `PlannedRows` adds it to
the sums of the passes to come, and a pass then costs the same with one row as with 256. With a cut-off the batch
decides in each pass, and `CutOffRows` asks every row in turn.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple, Protocol

import numpy as np

from speclab.replications.chapter10.fleet.draws import Bursts


class PassRows(NamedTuple):
    """What the time of a pass depends on; see `speclab.roofline.step.Rows`."""

    rows: int
    context: int
    drafted: int
    drafted_context: int


class DecodingRows(Protocol):
    """Rows that write tokens; their passes are numbered from 0."""

    @property
    def count(self) -> int:
        """Rows."""
        ...

    def join(self, request: int, prompt: int, bursts: Bursts) -> None:
        """Add a row that has its first token and takes part from the next pass on."""
        ...

    def next_pass(self) -> PassRows:
        """Return the rows of the next pass."""
        ...

    def done(self) -> list[tuple[int, int]]:
        """Count the pass as done; return the requests that it finished, and how many passes each took."""
        ...


class PlannedRows:
    """Rows whose progress is known in advance.

    Parameters
    ----------
    most_passes : int
        Upper bound on the number of passes.
    speculates : bool
        Whether the passes may verify drafts.
    """

    def __init__(self, most_passes: int, speculates: bool):
        self.count = 0
        self._next = 0
        self._context = np.zeros(most_passes + 1, dtype=np.int64)
        self._drafted = np.zeros(most_passes + 1 if speculates else 0, dtype=np.int64)
        self._drafted_context = np.zeros_like(self._drafted)
        self._speculates = speculates
        self._last: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)

    def join(self, request: int, prompt: int, bursts: Bursts) -> None:
        """Add a row to the sums of all of its passes."""
        passes = len(bursts.kept)
        span = slice(self._next, self._next + passes)
        context = prompt + 1 + np.cumsum(bursts.kept) - bursts.kept
        self._context[span] += context
        if self._speculates:
            self._drafted[span] += bursts.drafted
            self._drafted_context[span] += context * bursts.drafted
        self._last[span.stop - 1].append((request, passes))
        self.count += 1

    def next_pass(self) -> PassRows:
        """Return the sums of the next pass."""
        number, context = self._next, self._context.item(self._next)
        if not self._speculates:
            return PassRows(self.count, context, 0, 0)
        return PassRows(self.count, context, self._drafted.item(number), self._drafted_context.item(number))

    def done(self) -> list[tuple[int, int]]:
        """Count the pass as done."""
        finished = self._last.pop(self._next, [])
        self._next += 1
        self.count -= len(finished)
        return finished


class _Row:
    __slots__ = ("bursts", "context", "drafted", "left", "passes", "request", "used")

    def __init__(self, request: int, prompt: int, bursts: Bursts):
        self.request, self.context = request, prompt + 1
        self.bursts, self.drafted = (bursts.accepted + 1).tolist(), bursts.drafted.tolist()
        self.left = int(bursts.kept.sum())
        self.passes = self.used = 0


class CutOffRows:
    """Rows that speculate only in passes of fewer than `below` rows; a row's draws wait for such a pass."""

    def __init__(self, below: int):
        self._below = below
        self._rows: list[_Row] = []

    @property
    def count(self) -> int:
        """Rows."""
        return len(self._rows)

    def join(self, request: int, prompt: int, bursts: Bursts) -> None:
        """Add a row."""
        self._rows.append(_Row(request, prompt, bursts))

    def next_pass(self) -> PassRows:
        """Return the sums of the next pass."""
        rows = self._rows
        context = sum(row.context for row in rows)
        if len(rows) >= self._below:
            return PassRows(len(rows), context, 0, 0)
        drafted = [row.context for row in rows if row.drafted[row.used]]
        return PassRows(len(rows), context, len(drafted), sum(drafted))

    def done(self) -> list[tuple[int, int]]:
        """Count the pass as done."""
        speculates = len(self._rows) < self._below
        finished = []
        for row in self._rows:
            kept = 1
            if speculates:
                kept = min(row.bursts[row.used], row.left)
                row.used += 1
            row.context += kept
            row.left -= kept
            row.passes += 1
            if not row.left:
                finished.append((row.request, row.passes))
        if finished:
            self._rows = [row for row in self._rows if row.left]
        return finished
