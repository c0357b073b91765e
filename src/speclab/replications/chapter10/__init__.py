"""The second source's chapter 10 rebuilt: its devices, workloads and presets, and its tables as functions."""

from speclab.replications.chapter10.animation import animation
from speclab.replications.chapter10.capacity import capacity_over_seeds, charges
from speclab.replications.chapter10.closed_forms import draws, table1, theorems
from speclab.replications.chapter10.gaps import gaps
from speclab.replications.chapter10.saturation import saturation
from speclab.replications.chapter10.sweep import compared, points, sweep
from speclab.replications.chapter10.table import cut_offs, device_table

__all__ = [
    "animation",
    "capacity_over_seeds",
    "charges",
    "compared",
    "cut_offs",
    "device_table",
    "draws",
    "gaps",
    "points",
    "saturation",
    "sweep",
    "table1",
    "theorems",
]
