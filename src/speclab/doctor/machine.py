"""Looks at this machine: packages, GPUs, memory, disk, model files. Nothing is started but small questions."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Literal

import psutil

from speclab import paths
from speclab.doctor import models
from speclab.doctor.base import Gpu, Machine
from speclab.engines import synthetic_cpu, vllm, vllm_flags
from speclab.errors import UserError
from speclab.lab import Arm, EngineName, Lab

TOLD = ("VLLM_USE_V2_MODEL_RUNNER", "VLLM_CPU_KVCACHE_SPACE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
"""Variables that change what vLLM does and that hold no secret."""
TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
MIB = 2**20


def probe(
    lab: Lab,
    arms: Sequence[Arm],
    engine: EngineName,
    *,
    base_url: str | None = None,
    clean_rate_per_s: float | None = None,
) -> Machine:
    """Return what can be known here about running arms of a lab.

    Parameters
    ----------
    lab, arms : Lab, sequence of Arm
        Their models are looked for, and their command lines shown to the installed vLLM's parser.
    engine : {'simulated', 'endpoint', 'vllm'}
        What would serve.
    base_url : str, optional
        Address of a server that is up; ``$SPECLAB_BASE_URL`` where not given.
    clean_rate_per_s : float, optional
        What the self-test of the client found, events a second.
    """
    version, build = _vllm()
    named = {lab.target.model, *(arm.speculation.model for arm in arms if arm.speculation and arm.speculation.model)}
    return Machine(
        vllm=version,
        vllm_build=build,
        synthetic_on_cpu=version == synthetic_cpu.MADE_FOR and _has_plugin(),
        gpus=gpus(),
        memory_bytes=psutil.virtual_memory().available,
        disk_bytes={"records": _free(paths.runs()), "models": _free(models.hub_cache(os.environ))},
        variables={name: os.environ[name] for name in TOLD if name in os.environ},
        has_hub_token=any(os.environ.get(name) for name in TOKENS) or (models.hub_home(os.environ) / "token").exists(),
        can_listen=_can_listen(),
        models={name: models.find(name, os.environ) for name in named},
        refused=_refused(lab, arms) if engine == "vllm" and version is not None else None,
        clean_rate_per_s=clean_rate_per_s,
        base_url=base_url or os.environ.get("SPECLAB_BASE_URL"),
        has_api_key=bool(os.environ.get("OPENAI_API_KEY")),
    )


def gpus() -> tuple[Gpu, ...]:
    """Return the NVIDIA GPUs that the driver shows; none where there is no driver."""
    query = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(query, capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    rows = [line.rsplit(",", 1) for line in said.splitlines() if "," in line]
    return tuple(Gpu(name=name.strip(), memory_bytes=int(size) * MIB) for name, size in rows if size.strip().isdigit())


def _vllm() -> tuple[str | None, Literal["gpu", "cpu"] | None]:
    builds: dict[str, Literal["gpu", "cpu"]] = {"vllm-cpu": "cpu", "vllm": "gpu"}
    for name, build in builds.items():
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        return version, "cpu" if "cpu" in version else build
    return None, None


def _has_plugin() -> bool:
    """Return whether vLLM would find this project's plugin (`speclab.engines.synthetic_cpu`)."""
    points = metadata.entry_points(group="vllm.general_plugins")
    return any(point.value.startswith("speclab.engines.synthetic_cpu") for point in points)


def _refused(lab: Lab, arms: Sequence[Arm]) -> dict[str, str | None] | None:
    commands = [vllm.command(lab, arm, 8000, sys.executable) for arm in arms]
    try:
        answers = vllm_flags.parsed(commands)
    except UserError as error:
        return {arm.arm: str(error) for arm in arms}
    return {arm.arm: answer.error for arm, answer in zip(arms, answers, strict=True)}


def _free(folder: Path) -> int:
    """Return the room on the disk that a folder is on, or will be on."""
    there = next(path for path in (folder, *folder.resolve().parents) if path.exists())
    return shutil.disk_usage(there).free


def _can_listen() -> bool:
    try:
        with socket.socket() as listener:
            listener.bind((vllm.HOST, 0))
    except OSError:
        return False
    return True
