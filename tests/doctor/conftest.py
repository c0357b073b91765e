"""A case on a machine that lacks nothing; no folder of labs/ is read."""

from __future__ import annotations

from typing import Any

import pytest
from doctor_cases import DRAFT, H100, HEAD, SERVER, TARGET, MakeCase, an_arm, files

from speclab.doctor.base import Case, Machine
from speclab.lab import Lab, Target


@pytest.fixture
def case() -> MakeCase:
    """Make a case on a machine with an H100, GPU vLLM 0.33 and every file; arguments change one thing each."""

    def make(
        method: str | None = None, k: int = 3, *, server: dict[str, Any] | None = None,
        without: tuple[str, ...] = (), environment: dict[str, str] | None = None, arm: dict[str, Any] | None = None,
        concurrencies: tuple[int, ...] = (1, 4, 16, 64, 256), **machine: Any,
    ) -> Case:  # fmt: skip
        flags = {name: value for name, value in (SERVER | (server or {})).items() if name not in without}
        lab = Lab(
            title="Made", question="?", name="made", target=Target(model=TARGET, tokens="llama-3.1"),
            arms=("baseline",), workloads=("chat",), concurrencies=concurrencies, server=flags,
            environment=environment or {},
        )  # fmt: skip
        models = {TARGET: files(), DRAFT: files(2_000_000_000, num_hidden_layers=16), HEAD: files(1_000_000_000)}
        facts = {"vllm": "0.33.0", "vllm_build": "gpu", "gpus": (H100,), "models": models,
                 "memory_bytes": 64 * 10**9, "disk_bytes": {"records": 10**11, "models": 10**11}}  # fmt: skip
        return Case(lab, an_arm(method, k, **(arm or {})), an_arm(), Machine.model_validate(facts | machine))

    return make
