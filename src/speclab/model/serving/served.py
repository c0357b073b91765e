"""What a run leaves: the times of every request, and every pass of every instance."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from speclab.model.serving.pricing import Price
from speclab.model.serving.workload import Requests

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(slots=True)
class Passes:
    """The passes of one instance. The four lists of a decode pass are of equal length."""

    start_s: list[float] = field(default_factory=list)
    end_s: list[float] = field(default_factory=list)
    """Start and end of each decode pass, s."""
    rows: list[int] = field(default_factory=list)
    drafted: list[int] = field(default_factory=list)
    """Its rows, and those of them that had a draft."""
    drafting_s: list[float] = field(default_factory=list)
    """Its part that the drafter took, s."""
    prefill_start_s: list[float] = field(default_factory=list)
    prefill_end_s: list[float] = field(default_factory=list)
    prefill_drafting_s: list[float] = field(default_factory=list)
    """The same of each pass that read prompts."""
    energy_j: float = 0.0
    """Dynamic energy of all passes, J."""

    def note(self, is_prefill: bool, start_s: float, end_s: float, price: Price) -> None:
        """Add one pass."""
        self.energy_j += price.energy_j
        if is_prefill:
            self.prefill_start_s.append(start_s)
            self.prefill_end_s.append(end_s)
            self.prefill_drafting_s.append(price.drafting_s)
        else:
            self.start_s.append(start_s)
            self.end_s.append(end_s)
            self.drafting_s.append(price.drafting_s)


@dataclass(frozen=True, slots=True)
class Served:
    """What became of each request; arrays have shape (requests,).

    Attributes
    ----------
    requests : Requests
        What was asked.
    arrival_s, first_s, finish_s : ndarray of float
        When it arrived, had its first token, had its last, s; NaN where that never was.
    instance : ndarray of int
        Which instance served it; -1 where none ever could.
    first_pass, passes : ndarray of int
        Its first decode pass there, and how many it took.
    by_instance : tuple of Passes
        The passes of each instance.
    """

    requests: Requests
    arrival_s: Floats
    first_s: Floats
    finish_s: Floats
    instance: Ints
    first_pass: Ints
    passes: Ints
    by_instance: tuple[Passes, ...]

    @property
    def horizon_s(self) -> float:
        """When the last request finished, s."""
        return float(np.nanmax(self.finish_s))
