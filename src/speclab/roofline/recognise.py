"""Map a driver's name to a known device; kept apart from `devices`, on which everything simulated depends."""

from __future__ import annotations

import re

from speclab.roofline.devices import DEVICES, Device


def recognised(name: str) -> Device | None:
    """Return the device that a driver's name (``NVIDIA H100 80GB HBM3``), or a text that holds it, means; else None.

    Cards for PCIe slots and parts of a GPU have other rates than the devices known here.
    """
    words = set(re.findall(r"[a-z0-9]+", name.lower()))
    sizes = {word for word in words if re.fullmatch(r"\d+gb", word)}
    if words & {"pcie", "nvl", "mig"}:
        return None
    known = (device for slug, device in DEVICES.items() if slug.partition("-")[0] in words)
    return next((device for device in known if not sizes or f"{device.memory_bytes / 1e9:.0f}gb" in sizes), None)
