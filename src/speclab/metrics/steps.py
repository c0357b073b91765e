"""What a step costs, and what an accepted token costs."""

from __future__ import annotations

from speclab.metrics.acceptance import tokens_per_step
from speclab.metrics.latency import step_gaps
from speclab.metrics.window import CellWindow


def step_time(cut: CellWindow) -> float | None:
    """Return the mean time of a step, ms; None without decode steps.

    Mean gap between consecutive events of a request inside the window, so each row's step weighs the same. Steps that
    other rows' prefills made longer are in it: that is what a user of a full server sees. `step_gap` at 0.5 is nearer
    to the step without them.
    """
    gaps_ms = step_gaps(cut)
    return float(gaps_ms.mean()) if len(gaps_ms) else None


def ms_per_accepted_token(cut: CellWindow) -> float | None:
    """Return `step_time` / `tokens_per_step`, ms: what decides, where acceptance alone does not."""
    time_ms, tokens = step_time(cut), tokens_per_step(cut)
    return None if time_ms is None or not tokens else time_ms / tokens
