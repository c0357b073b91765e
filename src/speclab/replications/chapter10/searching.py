"""The search for one point's capacity, shared by all of the chapter's tables."""

from __future__ import annotations

from collections.abc import Iterable

from speclab.errors import UserError
from speclab.replications.chapter10.fleet.capacity import Capacity, LoadTest
from speclab.replications.chapter10.fleet.fleet import Charges
from speclab.replications.chapter10.fleet.metrics import at_capacity
from speclab.replications.chapter10.presets import REFERENCE_RATE, SATURATING, WORKLOADS
from speclab.replications.chapter10.speculation_presets import assumed, preset_fleet
from speclab.roofline.devices import device as find_device

SLOWEST = ("coding-agent", "chat", "voice", "long-rag", "offline-batch")
"""The workloads, slowest to simulate first."""


def capacity(bench: LoadTest, workload: str) -> Capacity:
    """Return the highest load that is carried, searched from twice the reference load; `SATURATING` needs no search."""
    if workload in SATURATING:
        return Capacity(SATURATING[workload], bench.run(SATURATING[workload]), 1)
    return bench.capacity(2 * REFERENCE_RATE[workload])


def goodput(device: str, workload: str, preset: str, seed: int, charges: Charges) -> float:
    """Return requests per second and GPU at capacity, all drawn from one seed; NaN where nothing is carried."""
    fleet = preset_fleet(device, preset, workload, charges)
    if fleet.speculation is not None:
        # the page draws acceptance from seed 0 and arrivals from seed 1
        seeded = fleet.speculation.model_copy(update={"seed": seed - 1})
        fleet = fleet.model_copy(update={"speculation": seeded})
    served = capacity(LoadTest(fleet, WORKLOADS[workload], seed), workload).served
    if served is None:
        return float("nan")
    return at_capacity(served, fleet, saturated=workload in SATURATING)["goodput_per_gpu"]


def check_known(devices: Iterable[str], workloads: Iterable[str], presets: Iterable[str]) -> None:
    """Refuse an unknown slug.

    Raises
    ------
    UserError
        The first of them; the known ones are listed.
    """
    for device in devices:
        find_device(device)
    for workload in workloads:
        if workload not in WORKLOADS:
            remedy = f"the known workloads: {', '.join(WORKLOADS)}"
            raise UserError(f"unknown workload {workload!r}", remedy, key="workload")
    for preset in presets:
        assumed(preset, next(iter(WORKLOADS)))
