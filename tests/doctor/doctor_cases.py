"""Made-up files, flags and arms for the tests of the rules, and what they ask of a list of diagnoses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from speclab.doctor.base import Case, Diagnosis, Gpu, ModelFiles
from speclab.lab import Arm, Speculation

TARGET, DRAFT, HEAD = "owner/target", "owner/draft", "owner/head"
H100 = Gpu(name="NVIDIA H100 80GB HBM3", memory_bytes=80_000_000_000)
LLAMA_8B = {"hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32,
            "vocab_size": 128256}  # fmt: skip
SERVER: dict[str, Any] = {
    "max-num-seqs": 256,
    "max-num-batched-tokens": 8192,
    "enable-prefix-caching": False,
    "async-scheduling": False,
    "cudagraph-capture-sizes": [1, 4, 16, 64, 256, 1024],
}

MakeCase = Callable[..., Case]


def files(weight_bytes: int = 16_000_000_000, **config: Any) -> ModelFiles:
    return ModelFiles(place="hub cache", where="the hub's cache", config=LLAMA_8B | config, weight_bytes=weight_bytes)


def an_arm(method: str | None = None, k: int = 3, **server: Any) -> Arm:
    given: dict[str, Any] = {"method": method, "num_speculative_tokens": k}
    if method == "ngram":
        given |= {"prompt_lookup_min": 2, "prompt_lookup_max": 4}
    else:
        given["model"] = DRAFT if method == "draft_model" else HEAD
    speculation = Speculation.model_validate(given) if method else None
    return Arm(lab="made", arm=method or "baseline", label="Made", speculation=speculation, server=server)


def only(diagnoses: Sequence[Diagnosis]) -> Diagnosis:
    (found,) = diagnoses
    assert found.remedy or found.level in ("fine", "not known here")
    return found


def level(diagnoses: Sequence[Diagnosis]) -> str:
    return only(diagnoses).level
