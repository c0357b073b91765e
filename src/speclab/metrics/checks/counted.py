"""Whether the server's counters are whole, and count what this load asked for and nothing else."""

from __future__ import annotations

from speclab.metrics.checks.base import Band, Check, graded, not_offered
from speclab.metrics.counters import gained, was_reset
from speclab.metrics.window import CellWindow

RESIDUAL = Band(0.02, 0.05)


def counter_residual(cut: CellWindow) -> float | None:
    """Return 1 - event tokens / tokens that the server counted between its two readings; None where not offered."""
    gain = gained(cut.record)
    if gain is None or not gain.generation_tokens:
        return None
    return 1 - float(cut.between_readings.tokens.sum()) / gain.generation_tokens


def counters_check(cut: CellWindow) -> Check:
    """Hold tokens that arrived against tokens that the server counted: nobody else uses it, nothing is lost."""
    residual = counter_residual(cut)
    if residual is None:
        return not_offered("counters", RESIDUAL.passes, "counter of generated tokens")
    reason = (
        f"the server counted {residual:+.2%} more tokens than arrived" if residual else "all counted tokens arrived"
    )
    return graded("counters", RESIDUAL, residual, reason)


def counter_reset_check(cut: CellWindow) -> Check:
    """Check that no counter fell inside the window."""
    name, readings = "counter reset", cut.record.readings
    if len(readings) < 2 or all(reading.generation_tokens is None for reading in readings):
        return not_offered(name, 0.0, "counters at both borders")
    fell = sorted(was_reset(readings))
    reason = f"fell inside the window: {', '.join(fell)}" if fell else "no counter fell"
    return Check(name, "FAIL" if fell else "PASS", float(len(fell)), 0.0, reason)
