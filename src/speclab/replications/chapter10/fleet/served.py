"""What a run yields: the times of every request, and every pass of every instance."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from speclab.replications.chapter10.fleet.step_time import TimeAndEnergy
from speclab.replications.chapter10.fleet.workload import Requests

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(slots=True)
class Passes:
    """The passes of one instance; lists of one entry a pass.

    Attributes
    ----------
    start_s, end_s, drafting_s : list of float
        Start and end of each decode pass, and the part of it spent drafting, s.
    rows : list of int
        Its rows.
    prefill_start_s, prefill_end_s, prefill_drafting_s, prompts
        The same of each pass that read prompts.
    energy_j : float
        Dynamic energy of all passes, J.
    """

    start_s: list[float] = field(default_factory=list)
    end_s: list[float] = field(default_factory=list)
    drafting_s: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    prefill_start_s: list[float] = field(default_factory=list)
    prefill_end_s: list[float] = field(default_factory=list)
    prefill_drafting_s: list[float] = field(default_factory=list)
    prompts: list[int] = field(default_factory=list)
    energy_j: float = 0.0

    def note_decode(self, start_s: float, end_s: float, rows: int, step: TimeAndEnergy) -> None:
        """Add a pass that wrote tokens."""
        self.start_s.append(start_s)
        self.end_s.append(end_s)
        self.drafting_s.append(step.drafting_s)
        self.rows.append(rows)
        self.energy_j += step.energy_j

    def note_prefill(self, start_s: float, end_s: float, prompts: int, step: TimeAndEnergy) -> None:
        """Add a pass that read prompts."""
        self.prefill_start_s.append(start_s)
        self.prefill_end_s.append(end_s)
        self.prefill_drafting_s.append(step.drafting_s)
        self.prompts.append(prompts)
        self.energy_j += step.energy_j

    @property
    def worked_s(self) -> float:
        """Time of all passes, s."""
        return sum(self.end_s) - sum(self.start_s) + sum(self.prefill_end_s) - sum(self.prefill_start_s)

    @property
    def drafted_s(self) -> float:
        """The part of it spent drafting, s."""
        return sum(self.drafting_s) + sum(self.prefill_drafting_s)


@dataclass(frozen=True, slots=True)
class Served:
    """What became of each request; arrays have shape (requests,).

    Attributes
    ----------
    requests : Requests
        What was asked.
    arrival_s, first_s, finish_s : ndarray of float
        When it arrived, had its first token, had its last, s; NaN for what never happened.
    instance : ndarray of int
        The instance that served it; -1 where none could.
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
