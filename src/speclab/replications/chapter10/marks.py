"""How the page's matrix reads a change: better or worse, how much, and with which caveats."""

from __future__ import annotations

import math

SAME = 0.02
SIZES = (SAME, 0.10, 0.50)
"""Changes from which there are one, two and three arrows."""

AT_CAPACITY = ("goodput_per_gpu", "tok_s", "usd_per_mtok", "j_per_tok")
CLIFF = 1.0
"""Gain in goodput from which the baseline is assumed to sit at a latency cliff."""

MEANINGS = {
    "E": "the baseline sits at the edge of its SLOs: read the absolute numbers",
    "$": "prices per GPU-hour are illustrative",
    "alpha": "acceptance is assumed, not measured",
    "B": "power of this device is illustrative even beside the others'",
}
"""What each caveat says."""


def marks(device: str, preset: str, metric: str, goodput_change: float) -> list[str]:
    """Return the caveats of one value.

    Parameters
    ----------
    device, preset, metric : str
        Slugs.
    goodput_change : float
        The preset's change of goodput on this workload and device; decides the mark E of all metrics at capacity.
    """
    caveats = []
    if metric in AT_CAPACITY and goodput_change >= CLIFF:
        caveats.append("E")
    if metric == "usd_per_mtok":
        caveats.append("$")
    if preset != "baseline":
        caveats.append("alpha")
    if device == "b200":
        caveats.append("B")
    return caveats


def verdict(metric: str, change: float) -> str | None:
    """Return ``better``, ``worse`` or ``same`` (within 2%), None for NaN; only goodput and tokens should rise."""
    if math.isnan(change):
        return None
    if abs(change) <= SAME:
        return "same"
    more_is_better = metric in ("goodput_per_gpu", "tok_s")
    return "better" if (change > 0) == more_is_better else "worse"


def size(change: float) -> int:
    """Return the number of arrows, 0 to 3; 0 for NaN."""
    if math.isnan(change) or abs(change) <= SAME:
        return 0
    return sum(abs(change) >= bound for bound in SIZES)
