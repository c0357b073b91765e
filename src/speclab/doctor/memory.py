"""Rules about room: weights and KV cache of the highest concurrency, and the disk."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from speclab.doctor.base import Case, Diagnosis, say
from speclab.doctor.weights import drafter_shape, target_shape
from speclab.roofline.devices import DEVICES
from speclab.roofline.transformers import BYTES_PER_VALUE, Transformer

DEFAULT_USABLE = 0.90
"""Share of a GPU's memory that vLLM fills unless told otherwise; newer versions take 0.92."""
RECORDS_BYTES = 1e9
"""Room for the records, logs and tables of one lab, byte. Measured labs need a tenth of it."""
KV_SPACE = "VLLM_CPU_KVCACHE_SPACE"
KV_FLAG = "kv-cache-memory-bytes"
GIB = 2**30
TOO_LITTLE = ("vllm#8031", "vllm#9995")
PARALLEL = "https://docs.vllm.ai/en/latest/serving/parallelism_scaling/"
EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts")
"""Where a ``config.json`` counts its experts."""


def gpus(case: Case) -> list[Diagnosis]:
    """Find a server that asks for more GPUs than this machine shows."""
    group = case.group
    if case.on_cpu or group.size == 1:
        return []
    found = f"{group.size} for {group}; {len(case.gpus)} here"
    if case.whole_number("nnodes") not in (None, 1):
        return say("not known here", "GPUs", f"{found}, and nnodes asks for other machines", "", PARALLEL)
    if group.size > len(case.gpus):
        return say("will fail", "GPUs", found, "smaller parallel sizes in lab.yml, or a machine with more GPUs",
                   PARALLEL)  # fmt: skip
    return say("fine", "GPUs", found, "", PARALLEL)


def kv_room(case: Case) -> list[Diagnosis]:
    """Find a KV cache for fewer rows than requests in flight: some wait, or are thrown out and read again."""
    target, drafter = _size(case, case.lab.target.model, target_shape(case)), _drafter_size(case)
    if target is None or drafter is None:
        missing = "target" if target is None else "drafter"
        return say("not known here", "KV room", f"the {missing}'s shape: no config.json at hand", "", *TOO_LITTLE)
    group = case.group
    rows = math.ceil(case.top / group.data)  # each replica serves its part of the requests
    needed = rows * case.longest_row * (_kv_share(case, target) + _kv_share(case, drafter, drafts=True))
    each = f" on each of {group.size} {'ranks' if case.on_cpu else 'GPUs'}" if group.size > 1 else ""
    wanted = f"{rows} rows of up to {case.longest_row} tokens need {_gb(needed)}{each}"
    weights = _weights_share(case, target) + _weights_share(case, drafter, drafts=True)
    room = _room(case, weights)
    if room is None and group.size * (needed + weights) > case.machine.memory_bytes:
        room = "main memory", case.machine.memory_bytes / group.size - weights
    if room is None:
        return say("not known here", "KV room", f"{wanted}; {KV_FLAG} is not set, vLLM chooses",
                   f"{KV_FLAG} under server in lab.yml", *TOO_LITTLE)  # fmt: skip
    where, free = room
    if free <= 0:
        return say("will fail", "KV room", f"the weights, {_gb(weights)}{each}, leave nothing of {where}",
                   "a device with more memory, a larger tensor-parallel-size, or a smaller target",
                   *TOO_LITTLE)  # fmt: skip
    if free < needed:
        held = f"{rows * free / needed:.0f} rows"
        return say("will mislead", "KV room", f"{wanted}; {where} leaves {_gb(free)}, {held}",
                   "lower the highest concurrency or max_tokens, or give more room", *TOO_LITTLE)  # fmt: skip
    return say("fine", "KV room", f"{wanted}; {where} leaves {_gb(free)}", "", *TOO_LITTLE)


def main_memory(case: Case) -> list[Diagnosis]:
    """Find weights and a KV cache that do not fit into this machine's main memory, where it serves."""
    target, drafter = _size(case, case.lab.target.model, target_shape(case)), _drafter_size(case)
    if not case.on_cpu or target is None or drafter is None:
        return []
    room, servers = _room(case, 0.0), len(case.lab.arms) if case.lab.side_by_side else 1
    kv_bytes = room[1] if room else 0.0
    each = _weights_share(case, target) + _weights_share(case, drafter, drafts=True) + kv_bytes
    needed, free = servers * case.group.size * each, case.machine.memory_bytes
    of_all = f" of {servers} servers at once" if servers > 1 else ""
    found = f"weights{' and KV cache' if kv_bytes else ''}{of_all} take {_gb(needed)} of {_gb(free)} free"
    if needed > free:
        return say(
            "will fail",
            "main memory",
            found,
            "a lab with a smaller target (speclab labs), or a larger machine",
            *TOO_LITTLE,
        )
    return say("fine", "main memory", found, "", *TOO_LITTLE)


def device(case: Case) -> list[Diagnosis]:
    """Find another device than the one that the lab's simulation and its published figures are about."""
    cites = f"labs/{case.lab.name}/lab.yml"
    if case.lab.simulated is None:
        return []
    meant = DEVICES[case.lab.simulated.device].name
    if case.on_cpu:
        return say("will mislead", "device", f"no NVIDIA GPU here; the lab is about one {meant}",
                   f"use a machine with one {meant}, or another lab (speclab labs)", cites)  # fmt: skip
    names = ", ".join(gpu.name for gpu in case.machine.gpus)
    if meant.split()[0].lower() not in names.lower():
        return say("will mislead", "device", f"{names}; the lab is about one {meant}",
                   "do not read the results beside the published ones", cites)  # fmt: skip
    return say("fine", "device", names, "", cites)


def disk(case: Case) -> list[Diagnosis]:
    """Find a disk that fills up before the lab is done."""
    hub = "https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables"
    free = case.machine.disk_bytes.get("records")
    if free is None:
        return say("not known here", "disk", "how much is free")
    if free < RECORDS_BYTES:
        return say("will fail", "disk", f"{_gb(free)} free for records", f"free {_gb(RECORDS_BYTES)}")
    absent, room = _to_download(case), case.machine.disk_bytes.get("models")
    if absent and room is not None and room < absent:
        return say("will fail", "disk", f"{_gb(room)} free for {_gb(absent)} of weights that are not here",
                   "free some, or point HF_HOME at a larger disk", hub)  # fmt: skip
    return say("fine", "disk", f"{_gb(free)} free for records")


def kv_bytes_per_token(config: dict[str, Any]) -> int:
    """Return the KV cache of one token, byte, by a model's ``config.json``: grouped queries, or one latent a layer."""
    layers = int(config["num_hidden_layers"])
    if latent := config.get("kv_lora_rank"):
        return layers * (int(latent) + int(config.get("qk_rope_head_dim") or 0)) * BYTES_PER_VALUE
    heads = int(config["num_attention_heads"])
    width = int(config.get("head_dim") or config["hidden_size"] // heads)
    return 2 * layers * kv_heads(config) * width * BYTES_PER_VALUE


def kv_heads(config: dict[str, Any]) -> int:
    """Return into how many parts a tensor-parallel group can divide the KV cache: its heads, 1 for a latent."""
    if config.get("kv_lora_rank"):
        return 1
    return int(config.get("num_key_value_heads") or config["num_attention_heads"])


def expert_share(config: dict[str, Any]) -> float:
    """Return the share of a model's weights that are experts, which all its replicas divide among them."""
    experts = next((int(config[key]) for key in EXPERTS if config.get(key)), 0)
    if not experts:
        return 0.0
    width = int(config.get("moe_intermediate_size") or config["intermediate_size"])
    hidden, layers = int(config["hidden_size"]), int(config["num_hidden_layers"])
    moe_layers = layers - int(config.get("first_k_dense_replace") or 0)
    of_experts = moe_layers * experts * 3 * hidden * width
    heads = int(config["num_attention_heads"])
    head = int(config.get("head_dim") or hidden // heads)
    attention = layers * hidden * head * 2 * (heads + int(config.get("num_key_value_heads") or heads))
    return of_experts / (of_experts + attention + 2 * hidden * int(config.get("vocab_size") or 0))


def _room(case: Case, weights: float) -> tuple[str, float] | None:
    """Return what holds the KV cache and how many bytes it has for it; None where vLLM chooses."""
    space = case.variable(KV_SPACE) if case.on_cpu else None
    if space:  # on a CPU the variable decides
        return f"{KV_SPACE} {space}", float(space) * GIB
    given = case.whole_number(KV_FLAG)
    if given is not None:
        return f"{KV_FLAG} {given}", float(given)
    if case.on_cpu or not case.gpus:
        return None
    usable = case.flags.get("gpu-memory-utilization", DEFAULT_USABLE)
    share = float(usable) if isinstance(usable, int | float) else DEFAULT_USABLE
    gpu = min(case.gpus[: case.group.size], key=lambda each: each.memory_bytes)
    return gpu.name, share * gpu.memory_bytes - weights


@dataclass(frozen=True, slots=True)
class _Size:
    """What one model takes undivided: weights and KV cache of a token in byte, and how both can be divided."""

    weights: float
    kv_per_token: float
    kv_heads: int
    experts: float = 0.0


def _weights_share(case: Case, size: _Size, *, drafts: bool = False) -> float:
    """Return the weights on one GPU. Drafters lie whole on the last stage, divided over their own tensor group."""
    group, tensor = case.group, case.drafter_group if drafts else case.group.tensor
    stages = 1 if drafts else group.pipeline
    rest = size.weights * (1 - size.experts) / (tensor * stages)
    return rest + size.weights * size.experts / (tensor * stages * group.data)


def _kv_share(case: Case, size: _Size, *, drafts: bool = False) -> float:
    """Return the KV cache of a token on one GPU: no head is divided, so that a larger group holds heads twice."""
    group, tensor = case.group, case.drafter_group if drafts else case.group.tensor
    parts = min(tensor, min(tensor, size.kv_heads) * group.decode_context)
    return size.kv_per_token / (parts * (1 if drafts else group.pipeline))


def _drafter_size(case: Case) -> _Size | None:
    name = case.arm.speculation.model if case.arm.speculation else None
    return _Size(0.0, 0.0, 1) if name is None else _size(case, name, drafter_shape(case))


def _size(case: Case, name: str, shape: Transformer | None) -> _Size | None:
    """Return what a model takes, by the files that are here, else by the known shape."""
    files = case.machine.models.get(name)
    if files and files.config and files.weight_bytes:
        config = files.config
        return _Size(files.weight_bytes, kv_bytes_per_token(config), kv_heads(config), expert_share(config))
    return _Size(shape.resident_bytes, shape.kv_bytes_per_token, shape.kv_heads) if shape else None


def _to_download(case: Case) -> float:
    named = [(case.lab.target.model, target_shape(case))]
    if case.arm.speculation and case.arm.speculation.model:
        named.append((case.arm.speculation.model, drafter_shape(case)))
    absent = [shape for name, shape in named if (files := case.machine.models.get(name)) and files.place == "hub"]
    return sum(shape.resident_bytes for shape in absent if shape)


def _gb(size: float) -> str:
    return f"{size / 1e9:.1f} GB"
