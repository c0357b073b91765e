"""The mock in vLLM's place: started as vLLM is, and read as vLLM is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2
import pytest

import posing
from speclab import lab as labs
from speclab.engines import vllm
from speclab.engines.base import EngineIdentity, Reading
from speclab.engines.mock_vllm import Profile

PROFILE = Profile.model_validate(posing.PROFILE)


@pytest.mark.parametrize(
    ("arm", "method"),
    [
        ("baseline", "baseline"), ("draft-1b-k3", "draft_model"), ("eagle3-k3", "eagle3"), ("ngram-k8", "ngram-8"),
        ("ngram-k2", "ngram"),
    ],
)  # fmt: skip
def test_the_command_line_of_an_arm_says_how_it_is_served(arm: str, method: str) -> None:
    lab = labs.load("lab09")
    server = PROFILE.server(vllm.command(lab, lab.arm(arm), 8000)[3:])
    assert server.script.step_ms == PROFILE.steps[method].step_ms
    assert server.script.acceptance == PROFILE.steps[method].acceptance
    assert server.script.model == lab.target.model
    assert server.script.positions == (lab.arm(arm).k or None)


def test_serve_and_a_model_will_do_and_other_flags_are_ignored() -> None:
    async def pages() -> list[httpx2.Response]:
        words = "serve org/model --port 0 --enforce-eager --max-num-seqs 16"
        async with PROFILE.server(words.split()) as server, httpx2.AsyncClient(trust_env=False) as client:
            root = server.url.removesuffix("/v1")
            return [await client.get(f"{root}/{page}") for page in ("health", "version", "v1/models", "nowhere")]

    health, version, models, nowhere = asyncio.run(pages())
    assert (health.status_code, nowhere.status_code) == (200, 404)
    assert version.json() == {"version": posing.VERSION}
    assert [model["id"] for model in models.json()["data"]] == ["org/model"]


def test_it_is_found_started_and_named_as_vllm_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in posing.environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(tmp_path / "site")  # what PYTHONPATH does to a process that starts
    monkeypatch.setattr(vllm, "slug", vllm.slug.__wrapped__)
    monkeypatch.setattr(vllm, "gpu_name", vllm.gpu_name.__wrapped__)
    monkeypatch.setattr("speclab.engines.device.gpu_name", vllm.gpu_name)
    lab = labs.load("lab09")
    opening = vllm.opening(lab, lab.arm("eagle3-k3"), tmp_path / "server.log")

    async def main() -> tuple[EngineIdentity, Reading]:
        async with opening.engine() as engine:
            return engine.identity, await engine.read()

    identity, reading = asyncio.run(main())
    assert (identity.source, identity.device) == (posing.BADGE, "nvidia-h100-80gb-hbm3")
    assert reading.drafts is not None
    assert reading.drafts > 0, "the probe's completion"
    assert (reading.waiting, reading.preemptions, reading.prefix_cache_hits) == (0, 0, 0)
    assert "a mock, no model" in (tmp_path / "server.log").read_text(encoding="utf-8")


def test_a_device_that_is_given_a_name_bears_it_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path / "site")
    for name, value in posing.environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    lab = labs.load("lab09")
    opening = vllm.opening(lab, lab.arm("baseline"), tmp_path / "server.log", device="rack-3")

    async def main() -> str:
        async with opening.engine() as engine:
            return engine.identity.source

    assert asyncio.run(main()) == f"measured (vLLM {posing.VERSION}, rack-3)"
