"""A head trained here on a tiny random target, served by real vLLM: it is agreed with, and leaves the text as it is."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path

import pytest

from speclab.engines import vllm, weights
from speclab.engines.base import Reading
from speclab.engines.endpoint import Endpoint
from speclab.engines.writing import TextAnswer
from speclab.lab import Arm, Lab, Sampling, Speculation, Target
from speclab.prompts.base import Prompt

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        importlib.util.find_spec("vllm") is None, reason="vLLM is not installed here (pip install -e '.[cpu,test]')"
    ),
]

SAMPLING = Sampling(temperature=0, max_tokens=48, seed=9, ignore_eos=True)
PROMPTS = [Prompt("chat", f"chat/{number}", f"How do {what} work?") for number, what in enumerate(("tides", "sails"))]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return weights.tiny(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def head(target: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch

    from speclab.drafters import corpus, making
    from speclab.drafters.recipe import CorpusRecipe, HeadRecipe, Recipe

    asked = CorpusRecipe(
        sampled_questions=0, sampled_stubs=0, templated_questions=40, library_functions=0, held_out=4, answer_tokens=48,
        rows=36,
    )  # fmt: skip
    recipe = Recipe(name="tiny", target=str(target), corpus=asked, head=HeadRecipe(draft_vocabulary=128, steps=40))
    folder = tmp_path_factory.mktemp("head")
    torch.set_num_threads(1)  # so small a network's threads would only wait for each other
    corpus.make(recipe, folder / "corpus", workers=1, say=lambda line: None)
    return making.make("head", recipe, folder, folder / "made", folder / "notes", lambda line: None)


def written(target: Path, speculation: Speculation | None, log: Path) -> tuple[list[TextAnswer], Reading]:
    lab = Lab(
        title="Tiny",
        question="What does it write?",
        name="tiny",
        target=Target(model=str(target), tokens="smollm2"),
        engine="vllm",
        arms=("arm",),
        workloads=("chat",),
        concurrencies=(1,),
        server={"dtype": "float32", "enforce-eager": True, "max-model-len": 512, "max-num-seqs": 2, "seed": 9},
        environment={"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"},
    )
    arm = Arm(lab="tiny", arm="arm", label="arm", speculation=speculation)

    async def main() -> tuple[list[TextAnswer], Reading]:
        async with vllm.opening(lab, arm, log, ready_within_s=300.0).engine() as engine:
            assert isinstance(engine, Endpoint)
            return [await engine.write(prompt, SAMPLING) for prompt in PROMPTS], await engine.read()

    return asyncio.run(main())


def test_a_trained_head_is_served_agreed_with_and_leaves_the_text(target: Path, head: Path, tmp_path: Path) -> None:
    speculation = Speculation(method="eagle3", model=str(head), num_speculative_tokens=3)
    drafted, reading = written(target, speculation, tmp_path / "drafted.log")
    plain, _ = written(target, None, tmp_path / "plain.log")
    assert reading.drafts
    assert reading.accepted_tokens, "the target agreed with nothing: training and serving differ"
    for ours, theirs in zip(plain, drafted, strict=True):
        assert (ours.error, theirs.error) == (None, None)
        assert ours.token_ids is not None
        assert len(ours.token_ids) == SAMPLING.max_tokens
        assert theirs.token_ids == ours.token_ids
        assert theirs.text == ours.text
