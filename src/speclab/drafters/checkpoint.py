"""Drafters as folders that vLLM can serve."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from speclab import whole
from speclab.drafters.eagle3 import Head
from speclab.drafters.llama import Weights
from speclab.engines.weights import LAYERS_FILE, eagle3_config


def save_head(head: Head, layers: tuple[int, ...], target: Path, folder: Path) -> None:
    """Write an EAGLE-3 head in bfloat16.

    Parameters
    ----------
    head : Head
        The trained head.
    layers : tuple[int, ...]
        The layers of the target whose outputs it reads.
    target : Path
        The target's folder.
    folder : Path
        Destination; older files there are replaced.
    """
    tensors = _narrow(head.weights)
    # what vLLM adds to a draft token's number to get the target's
    tensors["d2t"] = head.draft_ids - torch.arange(len(head.draft_ids))
    _save(tensors, eagle3_config(_config(target), len(head.draft_ids), layers), folder)


def save_draft_model(weights: Weights, layers: int, target: Path, folder: Path) -> None:
    """Write a draft model of some layers in bfloat16, by transformers' names."""
    _save(_narrow(weights), {**_config(target), "num_hidden_layers": layers}, folder)


def save_layers(weights: Weights, layers: int, target: Path, folder: Path) -> None:
    """Write the trained part of a draft model; `speclab.engines.weights.draft_model` adds the target's part."""
    learnt = {name: weight for name, weight in weights.items() if name.startswith("model.layers.")}
    _save(_narrow(learnt), {**_config(target), "num_hidden_layers": layers}, folder, LAYERS_FILE)


def _narrow(weights: Weights) -> Weights:
    return {name: weight.detach().to(torch.bfloat16).contiguous() for name, weight in weights.items()}


def _save(tensors: Weights, config: dict[str, Any], folder: Path, file: str = "model.safetensors") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / ".model.new"
    save_file(tensors, str(new), metadata={"format": "pt"})
    new.replace(folder / file)
    whole.write(folder / "config.json", json.dumps(config, indent=2, sort_keys=True) + "\n", "the drafter's shape")


def _config(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return content
