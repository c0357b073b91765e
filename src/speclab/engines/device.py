"""The device that a server on this machine would run on, as a slug for the records' path."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from functools import cache
from pathlib import Path

_NOISE = r"\((?:r|tm|c)\)|\bcpu\b|\bprocessor\b|@.*|\bx\d+$|\b\d+-core\b"


@cache
def slug() -> str:
    """Return the name of the GPU, or of the processor and how many of its cores this process may use.

    Examples: ``nvidia-h100-80gb-hbm3``, ``intel-xeon-platinum-8481c-2-cores``.
    """
    gpu = gpu_name()
    return slugged(gpu) if gpu is not None else cpu_slug()


@cache
def cpu_slug() -> str:
    """Return the name of the processor and how many of its cores this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return f"{slugged(cpu_model())}-{cores}-core{'s' if cores > 1 else ''}"


@cache
def gpu_name() -> str | None:
    """Return the first NVIDIA GPU's name as the driver gives it; None where there is none."""
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        names = subprocess.run(query, capture_output=True, text=True, check=True, timeout=30).stdout.split("\n")
    except (OSError, subprocess.SubprocessError):
        return None
    return names[0].strip() or None


def slugged(name: str) -> str:
    """Return a device's marketing name in lower case and dashes, without marks and clock rates."""
    bare = re.sub(_NOISE, " ", name.lower())
    return "-".join(re.findall(r"[a-z0-9]+", bare)) or "unknown"


@cache
def cpu_model() -> str:
    """Return the processor's name as the kernel gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]} x{len(names)}" if names else platform.machine()
