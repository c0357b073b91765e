"""Finds the files of a model on this machine, by the names that vLLM would look under; no hub is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from speclab import paths
from speclab.doctor.base import ModelFiles
from speclab.engines.weights import LOCAL

WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")


def find(name: str, variables: Mapping[str, str]) -> ModelFiles:
    """Return what of a model is here.

    Parameters
    ----------
    name : str
        As in a lab: a folder (relative to the checkout's root), or a name on the model hub.
    variables : mapping of str to str
        The environment; ``HF_HUB_CACHE``, ``HF_HOME`` and ``XDG_CACHE_HOME`` move the hub's cache.
    """
    if name.startswith(LOCAL):
        folder = paths.root() / name
        if not (folder / "config.json").exists():
            return ModelFiles(place="missing folder", where=paths.shown(folder))
        return _files("folder", folder)
    cache = hub_cache(variables)
    snapshots = sorted((cache / f"models--{name.replace('/', '--')}" / "snapshots").glob("*/config.json"))
    if not snapshots:
        return ModelFiles(place="hub", where="the hub's cache")
    return _files("hub cache", max(snapshots, key=lambda file: file.stat().st_mtime).parent)


def hub_cache(variables: Mapping[str, str]) -> Path:
    """Return the folder in which the hub's client keeps models, whether it is there or not."""
    if "HF_HUB_CACHE" in variables:
        return Path(variables["HF_HUB_CACHE"])
    return hub_home(variables) / "hub"


def hub_home(variables: Mapping[str, str]) -> Path:
    """Return the folder of the hub's client."""
    if "HF_HOME" in variables:
        return Path(variables["HF_HOME"])
    return Path(variables.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "huggingface"


def _files(place: str, folder: Path) -> ModelFiles:
    weights = {file.resolve() for pattern in WEIGHTS for file in folder.glob(pattern) if file.exists()}
    where = paths.shown(folder) if place == "folder" else "the hub's cache"
    return ModelFiles.model_validate(
        {"place": place, "where": where, "config": _config(folder / "config.json"),
         "weight_bytes": sum(file.stat().st_size for file in weights)}
    )  # fmt: skip


def _config(file: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
