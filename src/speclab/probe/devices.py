"""The device that a probe runs on: its kind, free memory and name."""

from __future__ import annotations

from typing import Any, Literal

import psutil

from speclab.engines import device as names
from speclab.errors import UserError
from speclab.probe.needs import needed

Kind = Literal["cpu", "cuda"]


def chosen(kind: Kind | None) -> Kind:
    """Return the kind of device that was asked for, or the fastest available.

    Raises
    ------
    UserError
        A GPU was asked for and PyTorch sees none.
    """
    if kind == "cpu":
        return "cpu"
    try:
        has_gpu: bool = needed("torch").cuda.is_available()
    except UserError:
        if kind is None:
            return "cpu"
        raise
    if kind == "cuda" and not has_gpu:
        raise UserError(
            "no CUDA device that PyTorch can use here",
            "use --device cpu, or install a PyTorch built for CUDA",
            key="--device",
        )
    return "cuda" if has_gpu else "cpu"


def free_bytes(kind: Kind) -> float:
    """Return the memory of a device that is available to a new process, byte."""
    if kind == "cpu":
        return float(psutil.virtual_memory().available)
    free, _ = needed("torch").cuda.mem_get_info()
    return float(free)


def slug(kind: Kind) -> str:
    """Return a device's name as in the path of its records."""
    return names.cpu_slug() if kind == "cpu" else names.slugged(needed("torch").cuda.get_device_name())


def facts(kind: Kind) -> dict[str, Any]:
    """Return further facts for a record: the machine's load, and the GPU's properties."""
    load = [round(average, 2) for average in psutil.getloadavg()]
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
