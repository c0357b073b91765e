"""The device that a probe runs on: which, how much memory it has left, what it is called."""

from __future__ import annotations

from typing import Any, Literal

import psutil

from speclab.engines import device as names
from speclab.errors import UserError
from speclab.probe.needs import needed

Kind = Literal["cpu", "cuda"]


def chosen(kind: Kind | None) -> Kind:
    """Return the kind of device that was asked for, or the fastest that there is.

    Raises
    ------
    UserError
        A GPU was asked for and PyTorch sees none.
    """
    if kind == "cpu":
        return "cpu"
    try:
        there: bool = needed("torch").cuda.is_available()
    except UserError:
        if kind is None:
            return "cpu"
        raise
    if kind == "cuda" and not there:
        raise UserError(
            "no CUDA device that PyTorch can use here", "take --device cpu, or a PyTorch built for CUDA", key="--device"
        )
    return "cuda" if there else "cpu"


def free_bytes(kind: Kind) -> float:
    """Return the memory of a device that a new process may have, byte."""
    if kind == "cpu":
        return float(psutil.virtual_memory().available)
    free, _ = needed("torch").cuda.mem_get_info()
    return float(free)


def slug(kind: Kind) -> str:
    """Return a device's name as in the path of its records."""
    return names.cpu_slug() if kind == "cpu" else names.slugged(needed("torch").cuda.get_device_name())


def facts(kind: Kind) -> dict[str, Any]:
    """Return what else a reader of a record may ask: the load beside the probe, and about a GPU."""
    load = [round(each, 2) for each in psutil.getloadavg()]
    if kind == "cpu":
        return {"load_average": load}
    torch = needed("torch")
    properties = torch.cuda.get_device_properties(0)
    return {
        "load_average": load,
        "cuda": torch.version.cuda,
        "gpu": properties.name,
        "gpu_memory_bytes": properties.total_memory,
        "multiprocessors": properties.multi_processor_count,
    }
