"""Real vLLM on this machine with a tiny random model: what its API and its counters say, and how it starts and ends."""

from __future__ import annotations

import asyncio
import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from sweeping import below

from speclab.engines import vllm, weights
from speclab.engines.base import Answer, EngineFailure, EngineIdentity, Reading
from speclab.engines.guard import is_alive
from speclab.lab import Arm, Lab, Phases, Sampling, Speculation, Target
from speclab.load.closed_loop import CellLog, run_cell
from speclab.prompts.base import Prompt, PromptSet

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        importlib.util.find_spec("vllm") is None, reason="vLLM is not installed here (pip install -e '.[cpu,test]')"
    ),
]

K = 3
SAMPLING = Sampling(temperature=0, max_tokens=64, seed=9, ignore_eos=True)
READY_WITHIN_S = 300.0
PROMPTS = PromptSet(
    measured=tuple(Prompt("chat", f"chat/{index}", f"again and again and again {index}") for index in range(4)),
    warm_up=(Prompt("chat", "warm/0", "def add(first, second): return first + second"),),
)
NGRAM = Speculation(method="ngram", num_speculative_tokens=K, prompt_lookup_min=2, prompt_lookup_max=4)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return weights.tiny(tmp_path_factory.mktemp("models") / "tiny")


def a_lab(model: Path, **server: str) -> Lab:
    return Lab(
        title="Tiny",
        question="What does the server say?",
        name="tiny",
        target=Target(model=str(model), tokens="smollm2"),
        engine="vllm",
        arms=("baseline", "ngram"),
        workloads=("chat",),
        concurrencies=(2,),
        server={
            "dtype": "bfloat16",
            "enforce-eager": True,
            "max-model-len": 512,
            "max-num-seqs": 4,
            "enable-prefix-caching": False,
            **server,
        },
        environment={"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"},
    )


def an_arm(name: str, speculation: Speculation | None = None) -> Arm:
    return Arm(lab="tiny", arm=name, label=name, speculation=speculation)


def descendants() -> set[int]:
    return {process.pid for process in below(os.getpid())}


async def ask(engine: vllm.Endpoint) -> Answer:
    answer = Answer(PROMPTS.measured[0], start_s=asyncio.get_running_loop().time())
    await engine.send(answer, SAMPLING)
    return answer


async def ask_until_gone(engine: vllm.Endpoint) -> None:
    while True:
        assert (await ask(engine)).error is not None


@dataclass
class Session:
    """What one server gave, from its start to its end."""

    identity: EngineIdentity
    before: Reading
    answer: Answer
    after: Reading
    cell: CellLog
    processes: set[int]
    left: set[int]


@pytest.fixture(scope="module")
def ngram(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Session:
    """One n-gram server: an answer between two readings, then a short cell, then its end."""
    opening = vllm.opening(
        a_lab(model),
        an_arm("ngram", NGRAM),
        tmp_path_factory.mktemp("ngram") / "server.log",
        ready_within_s=READY_WITHIN_S,
    )

    async def main() -> Session:
        async with opening.engine() as engine:
            processes = descendants()
            before = await engine.read()
            answer = await ask(engine)
            after = await engine.read()
            phases = Phases(length_s=4, drop_first_s=1, drop_last_s=1)
            cell = await run_cell(engine, PROMPTS, 2, phases, SAMPLING)
            return Session(engine.identity, before, answer, after, cell, processes, set())

    session = asyncio.run(main())
    session.left = {pid for pid in session.processes if is_alive(pid)}
    return session


def test_the_server_says_which_vllm_it_is(ngram: Session) -> None:
    assert ngram.identity.engine == "vllm"
    assert ngram.identity.version.startswith("vLLM 0.")
    assert ngram.identity.source == f"measured ({ngram.identity.version}, {vllm.device()})"


def test_events_hold_several_tokens_and_sum_to_the_usage(ngram: Session) -> None:
    answer = ngram.answer
    assert (answer.error, answer.finish_reason, answer.output_tokens) == (None, "length", SAMPLING.max_tokens)
    assert sum(answer.event_tokens) == SAMPLING.max_tokens
    # no upper bound here: with steps of 2 ms the front end merges what it cannot send in time
    assert max(answer.event_tokens) > min(answer.event_tokens) >= 1
    assert list(answer.event_s) == sorted(answer.event_s)
    assert answer.prompt_tokens is not None
    assert answer.prompt_tokens > 5


def test_the_counters_are_those_of_the_answer(ngram: Session) -> None:
    before, after, answer = ngram.before, ngram.after, ngram.answer
    assert after.generation_tokens is not None
    assert before.generation_tokens is not None
    assert after.generation_tokens - before.generation_tokens == SAMPLING.max_tokens
    assert after.prompt_tokens is not None
    assert before.prompt_tokens is not None
    assert after.prompt_tokens - before.prompt_tokens == answer.prompt_tokens
    assert (after.running, after.waiting, after.preemptions) == (0, 0, 0)


def test_n_gram_counters_rise_and_agree_by_position(ngram: Session) -> None:
    first, last = ngram.before, ngram.cell.readings[-1]
    assert first.drafts is not None
    assert last.drafts is not None
    assert last.draft_tokens is not None
    assert last.accepted_tokens is not None
    assert last.accepted_by_position is not None
    assert last.drafts > first.drafts
    assert last.drafts <= last.draft_tokens <= K * last.drafts
    assert len(last.accepted_by_position) == K
    assert sum(last.accepted_by_position) == last.accepted_tokens > 0
    assert list(last.accepted_by_position) == sorted(last.accepted_by_position, reverse=True)


def test_a_cell_on_real_vllm_keeps_its_slots_full_and_has_no_errors(ngram: Session) -> None:
    cell = ngram.cell
    assert cell.failure is None
    assert [answer.error for answer in cell.answers if answer.error] == []
    assert sum(answer.output_tokens == SAMPLING.max_tokens for answer in cell.answers) > 2
    assert len(cell.readings) == 3
    assert all(reading.running is not None and reading.running <= 2 for reading in cell.readings)


def test_the_end_leaves_no_process(ngram: Session) -> None:
    assert len(ngram.processes) >= 3  # the guard, the front end, the engine's core
    assert ngram.left == set()


def test_a_baseline_offers_no_speculative_counters_and_a_killed_core_is_a_death(model: Path, tmp_path: Path) -> None:
    opening = vllm.opening(
        a_lab(model), an_arm("baseline"), tmp_path / "server.log", ready_within_s=READY_WITHIN_S, hung_after_s=15
    )
    pids: set[int] = set()

    async def main() -> tuple[Answer, Reading]:
        async with opening.engine() as engine:
            pids.update(descendants())
            answer, reading = await ask(engine), await engine.read()
            for process in below(os.getpid()):
                if "EngineCore" in process.name() + " ".join(process.cmdline()):
                    process.kill()
            with pytest.raises(EngineFailure, match="died mid-run: the server ended with status") as failure:
                await ask_until_gone(engine)
            assert failure.value.log_tail
            return answer, reading

    answer, reading = asyncio.run(main())
    assert sum(answer.event_tokens) == answer.output_tokens == SAMPLING.max_tokens
    assert reading.generation_tokens is not None
    assert (reading.drafts, reading.draft_tokens, reading.accepted_tokens, reading.accepted_by_position) == (None,) * 4
    assert {pid for pid in pids if is_alive(pid)} == set()


def test_a_refused_flag_is_a_bad_configuration_with_the_servers_own_words(model: Path, tmp_path: Path) -> None:
    opening = vllm.opening(
        a_lab(model, **{"no-such-flag": "7"}), an_arm("baseline"), tmp_path / "log", ready_within_s=READY_WITHIN_S
    )

    async def main() -> None:
        async with opening.engine():
            raise AssertionError("opened")

    with pytest.raises(EngineFailure) as failure:
        asyncio.run(main())
    assert failure.value.kind == "bad configuration"
    assert "--no-such-flag" in failure.value.reason
    assert "--no-such-flag" in failure.value.log_tail
    assert below(os.getpid()) == []
