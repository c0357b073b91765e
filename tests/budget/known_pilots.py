"""Pilots with components that are known."""

from __future__ import annotations

from speclab.budget.components import Estimate
from speclab.budget.pilot import CellPilot, Pilot
from speclab.lab import BASELINE


def made_cell(
    arm: str = "arm",
    *,
    concurrency: int = 1,
    log_speed: float = 0.0,
    texts: float = 0.0,
    steps: float = 0.02,
    machine: float = 0.0,
    doubt: float = 0.0,
    prompts: int = 40,
    answers_per_s: float = 2.0,
    same_prompts: bool = False,
) -> CellPilot:
    """Return a cell; `doubt` is the relative standard error of each component."""
    parts = (Estimate(value, value * doubt) for value in (texts, steps, machine))
    return CellPilot(
        arm, "chat", concurrency, log_speed, *parts, answers_per_s=answers_per_s, prompts=prompts, ramp_s=4.0,
        repeats=3, window_s=10.0, same_prompts=same_prompts, passed=True,
    )  # fmt: skip


def pilot_of(*cells: CellPilot, start_s: float = 30.0) -> Pilot:
    """Return a pilot of some cells, with a baseline beside each that scatters as `made_cell` does."""
    beside = {each.concurrency: made_cell(BASELINE, concurrency=each.concurrency) for each in cells}
    own = {each.concurrency for each in cells if each.arm == BASELINE}
    bases = [base for at, base in beside.items() if at not in own]
    return Pilot("simulated", (*bases, *cells), (), start_s=start_s, pause_s=0.0, drop_last_s=1.0)
