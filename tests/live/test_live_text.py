"""Real vLLM here with a tiny random model: acceptance that is held, and text that speculation leaves alone."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path

import pytest

from speclab.engines import vllm, weights
from speclab.engines.base import Answer, Opening, Reading
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

RATES = (0.75, 0.5, 0.25)
SAMPLING = Sampling(temperature=0, max_tokens=128, seed=9, ignore_eos=True)
PROMPTS = [Prompt("chat", f"chat/{index}", f"again and again and again {index}") for index in range(8)]
NGRAM = Speculation(method="ngram", num_speculative_tokens=3, prompt_lookup_min=2, prompt_lookup_max=4)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return weights.tiny(tmp_path_factory.mktemp("models") / "tiny")


def an_opening(model: Path, speculation: Speculation | None, dtype: str, log: Path) -> Opening:
    lab = Lab(
        title="Tiny",
        question="What does it write?",
        name="tiny",
        target=Target(model=str(model), tokens="smollm2"),
        engine="vllm",
        arms=("arm",),
        workloads=("chat",),
        concurrencies=(8,),
        server={"dtype": dtype, "enforce-eager": True, "max-model-len": 512, "max-num-seqs": 8, "seed": 9},
        environment={"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"},
    )
    return vllm.opening(
        lab, Arm(lab="tiny", arm="arm", label="arm", speculation=speculation), log, ready_within_s=300.0
    )


def test_acceptance_is_held_at_the_marginal_rates_that_were_asked_for(model: Path, tmp_path: Path) -> None:
    head = weights.eagle3_random(tmp_path / "head", target=model)
    forced = Speculation(
        method="eagle3",
        model=str(head),
        num_speculative_tokens=3,
        rejection_sample_method="synthetic",
        synthetic_acceptance_rates=RATES,
    )
    opening = an_opening(model, forced, "bfloat16", tmp_path / "server.log")

    async def main() -> tuple[list[Answer], Reading]:
        async with opening.engine() as engine:
            now_s = asyncio.get_running_loop().time()
            answers = [Answer(prompt, start_s=now_s) for prompt in PROMPTS * 2]
            await asyncio.gather(*(engine.send(answer, SAMPLING) for answer in answers))
            return answers, await engine.read()

    answers, reading = asyncio.run(main())
    assert {(answer.error, answer.output_tokens) for answer in answers} == {(None, SAMPLING.max_tokens)}
    assert reading.drafts is not None
    assert reading.accepted_by_position is not None
    drafts = reading.drafts
    assert drafts > 16 * 128 / 4, "a step gives four tokens at most"
    for rate, accepted in zip(RATES, reading.accepted_by_position, strict=True):
        # five standard errors: wrong by chance once in two million runs
        assert abs(accepted / drafts - rate) < 5 * (rate * (1 - rate) / drafts) ** 0.5


def test_in_float32_n_gram_writes_what_the_baseline_writes(model: Path, tmp_path: Path) -> None:
    async def written(speculation: Speculation | None) -> tuple[list[TextAnswer], Reading]:
        opening = an_opening(model, speculation, "float32", tmp_path / "server.log")
        async with opening.engine() as engine:
            assert isinstance(engine, Endpoint)
            return [await engine.write(prompt, SAMPLING) for prompt in PROMPTS[:4]], await engine.read()

    baseline, _ = asyncio.run(written(None))
    ngram, reading = asyncio.run(written(NGRAM))
    assert reading.accepted_tokens, "no draft was accepted: nothing was compared"
    for ours, theirs in zip(baseline, ngram, strict=True):
        assert (ours.error, theirs.error) == (None, None)
        assert ours.token_ids is not None
        assert ours.gaps is not None
        assert len(ours.token_ids) == len(ours.gaps) == SAMPLING.max_tokens
        assert min(ours.gaps) >= 0
        assert theirs.token_ids == ours.token_ids
        assert theirs.text == ours.text
