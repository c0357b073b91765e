"""Rules about model files: where they are, and whether drafter and target fit each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from speclab.doctor.base import Case, Diagnosis, ModelFiles, say
from speclab.engines.weights import made_by
from speclab.roofline.transformers import TRANSFORMERS, Transformer

GATED = ("meta-llama/",)
"""Owners on the model hub whose models ask for a token and an accepted licence."""
AUX = "eagle_aux_hidden_state_layer_ids"


def target_files(case: Case) -> list[Diagnosis]:
    """Find that the target's weights are not here, and may not be had."""
    return _files(case, "target", case.lab.target.model)


def drafter_files(case: Case) -> list[Diagnosis]:
    """Find that the drafter's weights are not here, and may not be had."""
    name = case.arm.speculation.model if case.arm.speculation else None
    return _files(case, "drafter", name) if name else []


def _files(case: Case, rule: str, name: str) -> list[Diagnosis]:
    cites = ("tenstorrent/tt-inference-server#37",)
    files = case.machine.models.get(name)
    if files is None:
        return say("not known here", rule, f"whether {name} is here: it was not looked for", "", *cites)
    if files.place == "missing folder" or (files.place == "folder" and not files.weight_bytes):
        make = made_by(Path(name).name) or "put config.json and weights there"
        return say("will fail", rule, f"no model in {files.where}", make, *cites)
    if files.place in ("folder", "hub cache") and files.weight_bytes:
        return say("fine", rule, f"{name}: {_gb(files.weight_bytes)} in {files.where}", "", *cites)
    offline = case.variable("HF_HUB_OFFLINE") or case.variable("TRANSFORMERS_OFFLINE")
    if offline in ("1", "true", "True", "YES", "ON"):
        return say("will fail", rule, f"{name} is not in {files.where}, and HF_HUB_OFFLINE is set",
                   f"hf download {name} where there is a network, or unset it", *cites)  # fmt: skip
    if name.startswith(GATED) and not case.machine.has_hub_token:
        return say("will fail", rule, f"{name} is gated: not in {files.where}, and there is no hub token",
                   "accept its licence on the hub, then export HF_TOKEN", *cites)  # fmt: skip
    found = f"whether the hub gives {name}: not in {files.where}, asked for at the first start"
    return say("not known here", rule, found, f"hf download {name} beforehand", *cites)


def vocabulary(case: Case) -> list[Diagnosis]:
    """Find a draft model that writes other tokens than the target reads."""
    if case.method != "draft_model" or case.arm.speculation is None:
        return []
    cites = ("vllm#5203", "vllm#7252", "vllm#24322")
    name = case.arm.speculation.model or ""
    target, from_target = _vocabulary(case.machine.models.get(case.lab.target.model), target_shape(case))
    drafter, from_drafter = _vocabulary(case.machine.models.get(name), drafter_shape(case))
    if target is None or drafter is None:
        return say("not known here", "vocabulary", "whether drafter and target have the same: no config.json at hand",
                   "", *cites)  # fmt: skip
    basis = from_target if from_target == from_drafter else f"{from_drafter} and {from_target}"
    if target != drafter:
        return say("will fail", "vocabulary", f"the drafter has {drafter} tokens, the target {target} ({basis})",
                   "take a draft model of the target's family and size of vocabulary", *cites)  # fmt: skip
    return say("fine", "vocabulary", f"{target} tokens in both ({basis})", "", *cites)


def eagle(case: Case) -> list[Diagnosis]:
    """Find an EAGLE-3 head that was trained on other layers, or another target, than it will be fed from."""
    if case.method != "eagle3" or case.arm.speculation is None:
        return []
    rule, cites = "EAGLE-3 head", ("vllm#50170", "vllm#43671")
    if case.arm.is_forced:
        return say("fine", rule, "its drafts are not looked at: acceptance is forced", "", *cites)
    head, target = (_config(case, name) for name in (case.arm.speculation.model, case.lab.target.model))
    if head is None:
        return say("not known here", rule, "which layers it reads: no config.json at hand", "", *cites)
    width = head.get("target_hidden_size") or head.get("hidden_size")
    if target is not None and width != target.get("hidden_size"):
        return say("will fail", rule, f"made for states of {width}, the target's have {target.get('hidden_size')}",
                   "take the head of this target", *cites)  # fmt: skip
    layers = head.get(AUX) or (head.get("eagle_config") or {}).get(AUX)
    depth = target.get("num_hidden_layers") if target is not None else None
    if layers and depth and max(layers) > depth:
        return say("will fail", rule, f"reads layers {layers}, the target has {depth}", "take the head of this target",
                   *cites)  # fmt: skip
    if layers:
        return say("fine", rule, f"reads layers {layers}", "", *cites)
    guess = f" (2, {depth // 2}, {depth - 3} of {depth})" if depth else ""
    found = f"its config.json names no layers; vLLM takes its own{guess}; a head trained on others is hardly accepted"
    return say("not known here", rule, found, "look at the acceptance of position 1 first", *cites)


def target_shape(case: Case) -> Transformer | None:
    """Return the known shape that the lab's simulation takes the target to have."""
    return TRANSFORMERS.get(case.lab.simulated.shape) if case.lab.simulated else None


def drafter_shape(case: Case) -> Transformer | None:
    """Return the known shape that the arm's simulation takes the drafter to have."""
    return TRANSFORMERS.get(case.arm.simulated.shape or "") if case.arm.simulated else None


def _config(case: Case, name: str | None) -> dict[str, Any] | None:
    files = case.machine.models.get(name or "")
    return files.config if files else None


def _vocabulary(files: ModelFiles | None, shape: Transformer | None) -> tuple[int | None, str]:
    if files and files.config and "vocab_size" in files.config:
        return int(files.config["vocab_size"]), "config.json"
    return (shape.vocabulary, "the shape that the lab simulates") if shape else (None, "")


def _gb(size: float) -> str:
    return f"{size / 1e9:.1f} GB"
