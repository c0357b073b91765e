"""Rules about room: weights and KV cache of the highest concurrency, and the disk."""

from __future__ import annotations

from typing import Any

from speclab import prompts
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


def kv_room(case: Case) -> list[Diagnosis]:
    """Find a KV cache for fewer rows than requests in flight: some wait, or are thrown out and read again."""
    target, drafter = _size(case, case.lab.target.model, target_shape(case)), _drafter_size(case)
    if target is None or drafter is None:
        missing = "target" if target is None else "drafter"
        return say("not known here", "KV room", f"the {missing}'s shape: no config.json at hand", "", *TOO_LITTLE)
    tokens = case.top * longest_row(case)
    needed = tokens * (target[1] + drafter[1])
    wanted = f"{case.top} rows of up to {longest_row(case)} tokens need {_gb(needed)}"
    weights = target[0] + drafter[0]
    room = _room(case, weights)
    if room is None and needed + weights > case.machine.memory_bytes:
        room = "main memory", case.machine.memory_bytes - weights
    if room is None:
        return say("not known here", "KV room", f"{wanted}; {KV_FLAG} is not set, vLLM chooses",
                   f"{KV_FLAG} under server in lab.yml", *TOO_LITTLE)  # fmt: skip
    where, free = room
    if free <= 0:
        return say("will fail", "KV room", f"the weights, {_gb(weights)}, leave nothing of {where}",
                   "a device with more memory, or a smaller target", *TOO_LITTLE)  # fmt: skip
    if free < needed:
        rows = f"{case.top * free / needed:.0f} rows"
        return say("will mislead", "KV room", f"{wanted}; {where} leaves {_gb(free)}, {rows}",
                   "lower the highest concurrency or max_tokens, or give more room", *TOO_LITTLE)  # fmt: skip
    return say("fine", "KV room", f"{wanted}; {where} leaves {_gb(free)}", "", *TOO_LITTLE)


def main_memory(case: Case) -> list[Diagnosis]:
    """Find weights and a KV cache that do not fit into this machine's main memory, where it serves."""
    target, drafter = _size(case, case.lab.target.model, target_shape(case)), _drafter_size(case)
    if not case.on_cpu or target is None or drafter is None:
        return []
    room, servers = _room(case, 0.0), len(case.lab.arms) if case.lab.side_by_side else 1
    kv_bytes = room[1] if room else 0.0
    needed, free = servers * (target[0] + drafter[0] + kv_bytes), case.machine.memory_bytes
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


def longest_row(case: Case) -> int:
    """Return the tokens of the longest row that the lab can make: longest prompt and answer, cut at max-model-len."""
    longest = max(max(prompts.token_counts(case.lab.target.tokens, name).values()) for name in case.lab.workloads)
    row = longest + case.lab.sampling.max_tokens
    return min(row, case.whole_number("max-model-len") or row)


def kv_bytes_per_token(config: dict[str, Any]) -> int:
    """Return the KV cache of one token of a model with grouped-query attention, byte, by its ``config.json``."""
    heads = int(config["num_attention_heads"])
    width = int(config.get("head_dim") or config["hidden_size"] // heads)
    groups = int(config.get("num_key_value_heads") or heads)
    return 2 * int(config["num_hidden_layers"]) * groups * width * BYTES_PER_VALUE


def _room(case: Case, weights: float) -> tuple[str, float] | None:
    """Return what holds the KV cache and how many bytes it has for it; None where vLLM chooses."""
    space = case.variable(KV_SPACE) if case.on_cpu else None
    if space:  # on a CPU the variable decides
        return f"{KV_SPACE} {space}", float(space) * GIB
    given = case.whole_number(KV_FLAG)
    if given is not None:
        return f"{KV_FLAG} {given}", float(given)
    if case.on_cpu:
        return None
    usable = case.flags.get("gpu-memory-utilization", DEFAULT_USABLE)
    share = float(usable) if isinstance(usable, int | float) else DEFAULT_USABLE
    gpu = case.machine.gpus[0]
    return gpu.name, share * gpu.memory_bytes - weights


def _drafter_size(case: Case) -> tuple[float, float] | None:
    name = case.arm.speculation.model if case.arm.speculation else None
    return (0.0, 0.0) if name is None else _size(case, name, drafter_shape(case))


def _size(case: Case, name: str, shape: Transformer | None) -> tuple[float, float] | None:
    """Return weights and KV cache of a token, byte, by the files that are here, else by the known shape."""
    files = case.machine.models.get(name)
    if files and files.config and files.weight_bytes:
        return files.weight_bytes, kv_bytes_per_token(files.config)
    return (shape.resident_bytes, shape.kv_bytes_per_token) if shape else None


def _to_download(case: Case) -> float:
    named = [(case.lab.target.model, target_shape(case))]
    if case.arm.speculation and case.arm.speculation.model:
        named.append((case.arm.speculation.model, drafter_shape(case)))
    absent = [shape for name, shape in named if (files := case.machine.models.get(name)) and files.place == "hub"]
    return sum(shape.resident_bytes for shape in absent if shape)


def _gb(size: float) -> str:
    return f"{size / 1e9:.1f} GB"
