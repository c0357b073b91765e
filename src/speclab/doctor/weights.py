"""Rules about model files: where they are, and whether drafter and target fit each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from speclab.doctor.base import Case, Diagnosis, ModelFiles, say
from speclab.doctor.versions import numbers
from speclab.engines.weights import made_by
from speclab.roofline.transformers import TRANSFORMERS, Transformer

GATED = ("meta-llama/",)
"""Owners on the model hub whose models ask for a token and an accepted licence."""
POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length",
             "max_target_positions", "max_sequence_length", "max_seq_length", "seq_len")  # fmt: skip
"""Where a ``config.json`` says how many positions there are; vLLM takes the smallest."""
SCALED_ALREADY = ("su", "longrope", "llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling")
POSITIONS_RAISED_SINCE = (0, 32)
"""The first version seen that makes an EAGLE head's table of rotations as long as the target's (vllm#49343)."""
OUTGROWN = ("vllm#58080", "vllm#48894", "vllm#49343", "sgl-project/sglang#6783")
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


def positions(case: Case) -> list[Diagnosis]:
    """Find rows that outgrow the drafter's positions: from there it drafts badly, nothing, or out of its tables."""
    speculation, rule = case.arm.speculation, "drafter positions"
    if speculation is None or speculation.model is None:
        return []
    config = _config(case, speculation.model)
    known = None if config is None else longest_context(config)
    if known is None:
        return say("not known here", rule, "how far the drafter goes: no config.json at hand, or no positions in it",
                   "", *OUTGROWN)  # fmt: skip
    reached = case.longest_row + case.arm.k
    if known >= reached:
        return say("fine", rule, f"{known}; rows and drafts reach {reached}", "", *OUTGROWN)
    found = f"the drafter's config.json has {known}, rows and drafts reach {reached}: beyond, runner V1 puts token 0 "
    found += "for every draft of the batch, V2 goes on where the drafter was never trained"
    version = case.machine.vllm
    if version is not None and numbers(version) < POSITIONS_RAISED_SINCE:
        found += f"; vLLM {version} may read past the drafter's table of rotations"
    return say("will mislead", rule, found,
               f"a drafter of {reached} positions, or max_tokens so that prompt, answer and drafts end within {known}",
               *OUTGROWN)  # fmt: skip


def longest_context(config: dict[str, Any]) -> int | None:
    """Return the positions that a model was made for, by its ``config.json``, scaled as vLLM scales them; None if none.

    YaRN, Llama 3's and LongRoPE's ``max_position_embeddings`` are scaled already (``_get_and_verify_max_len`` in
    ``vllm/config/model.py``, 0.32); linear and dynamic scaling multiply it.
    """
    inner = config.get("transformer_layer_config") or config.get("text_config")
    if isinstance(inner, dict):
        return longest_context(inner)
    own = min((config[key] for key in POSITIONS if isinstance(config.get(key), int | float)), default=None)
    if own is None:
        return None
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = scaling.get("rope_type") or scaling.get("type") or "default"
    factor = 1.0 if kind in SCALED_ALREADY else float(scaling.get("factor") or 1.0)
    return int(own * factor)


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
