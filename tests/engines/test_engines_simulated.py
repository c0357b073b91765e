from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import numpy as np
import pytest

from speclab import lab as labs
from speclab import prompts
from speclab.config import validated
from speclab.engines import simulated
from speclab.engines.base import Answer, Engine, EngineFailure, Reading
from speclab.errors import UserError
from speclab.lab import Arm, Lab, Phases, Sampling, WorkloadName
from speclab.load.closed_loop import CellLog, run_cell
from speclab.roofline.devices import device
from speclab.roofline.forward_pass import decode, pass_time, prefill, verify
from speclab.roofline.speculation import tokens_per_pass
from speclab.roofline.step import STEP_OVERHEAD_S
from speclab.roofline.transformers import transformer

H100, TARGET = device("h100-sxm"), transformer("llama-3-8b")
LAB = labs.load("lab09").model_copy(update={"phases": Phases(length_s=12, drop_first_s=2, drop_last_s=1)})


def changed(model: Any, **values: Any) -> Any:
    return validated(type(model), {**model.model_dump(), **values})


def cell(arm: str | Arm, concurrency: int, lab: Lab = LAB, workload: WorkloadName = "chat") -> tuple[CellLog, Reading]:
    """Run one cell and return its log and the engine's counters after it."""
    found: list[tuple[CellLog, Reading]] = []
    opening = simulated.opening(lab, lab.arm(arm) if isinstance(arm, str) else arm, workload)

    async def main() -> None:
        async with opening.engine() as engine:
            prompt_set = prompts.load(workload, lab.sampling.seed)
            log = await run_cell(engine, prompt_set, concurrency, lab.phases, lab.sampling)
            found.append((log, await engine.read()))

    with asyncio.Runner(loop_factory=opening.loop_factory) as runner:
        runner.run(main())
    return found[0]


def served(arm: Arm, drive: Any, lab: Lab = LAB) -> Any:
    """Run `drive(engine)` in the arm's engine and return its result."""
    opening = simulated.opening(lab, arm, "chat")
    found: list[Any] = []

    async def main() -> None:
        async with opening.engine() as engine:
            found.append(await drive(engine))

    with asyncio.Runner(loop_factory=opening.loop_factory) as runner:
        runner.run(main())
    return found[0]


def decode_tokens(log: CellLog) -> np.ndarray[Any, Any]:
    """Tokens of every event but each answer's first (its prefill) and, where it ended, its last (cut at the end)."""
    bursts = [np.asarray(answer.event_tokens)[1 : -1 if answer.end_s is not None else None] for answer in log.answers]
    return np.concatenate(bursts)


@pytest.mark.parametrize("arm", ["baseline", "eagle3-k3", "ngram-k8"])
@pytest.mark.parametrize("concurrency", [1, 64])
def test_the_closed_loop_keeps_its_concurrency(arm: str, concurrency: int) -> None:
    log, _ = cell(arm, concurrency)
    first, last = log.readings[0], log.readings[-1]
    assert log.failure is None
    assert all(
        reading.running == pytest.approx(concurrency, abs=max(1, 0.05 * concurrency)) for reading in log.readings
    )
    # Little's law: tokens a second, times the time that a token takes its row, is the rows in flight
    assert first.generation_tokens is not None
    assert last.generation_tokens is not None
    throughput = (last.generation_tokens - first.generation_tokens) / (last.at_s - first.at_s)
    ended = [answer for answer in log.answers if answer.end_s is not None and (answer.output_tokens or 0) > 1]
    time_per_output_token = sum(a.event_s[-1] - a.event_s[0] for a in ended) / sum(a.output_tokens - 1 for a in ended)
    assert throughput * time_per_output_token == pytest.approx(concurrency, rel=0.05)


@pytest.mark.parametrize("arm", ["draft-1b-k3", "eagle3-k3", "ngram-k8", "ngram-k2"])
def test_tokens_per_step_and_acceptance_are_those_of_the_file(arm: str) -> None:
    read = LAB.arm(arm)
    assert read.simulated is not None
    curve, draft_rate = read.simulated.acceptance["chat"], read.simulated.draft_rate.get("chat", 1.0)
    log, reading = cell(arm, 64)

    tokens = decode_tokens(log)
    assert len(tokens) > 10_000
    error = tokens.std() / len(tokens) ** 0.5
    assert tokens.mean() == pytest.approx(tokens_per_pass(curve, draft_rate), abs=4 * error)

    assert reading.drafts is not None
    assert reading.accepted_by_position is not None
    for position, share in enumerate(curve):
        error = (share * (1 - share) / reading.drafts) ** 0.5
        assert reading.accepted_by_position[position] / reading.drafts == pytest.approx(share, abs=4 * error)
    row_steps = sum(len(answer.event_s) - 1 for answer in log.answers if len(answer.event_s))
    error = (draft_rate * (1 - draft_rate) / row_steps) ** 0.5
    assert reading.drafts / row_steps == pytest.approx(draft_rate, abs=4 * error)


def test_one_row_steps_exactly_as_the_cost_model_says() -> None:
    log, _ = cell("baseline", 1)
    counts = prompts.token_counts("llama-3.1", "chat")
    for answer in log.answers[:3]:
        prompt = counts[answer.prompt.id]
        assert answer.prompt_tokens == prompt
        first = pass_time(H100, prefill(TARGET, float(prompt), 1.0)).seconds + STEP_OVERHEAD_S
        assert answer.event_s[0] - answer.start_s == pytest.approx(first, rel=1e-9)
        steps = [
            pass_time(H100, decode(TARGET, 1.0, float(prompt + written))).seconds + STEP_OVERHEAD_S
            for written in range(1, len(answer.event_s))
        ]
        assert np.diff(answer.event_s) == pytest.approx(steps, rel=1e-9)


def test_one_row_with_a_drafter_pays_for_each_position() -> None:
    log, _ = cell("eagle3-k3", 1)
    answer = log.answers[1]
    assert answer.prompt_tokens is not None
    context = answer.prompt_tokens + np.cumsum(answer.event_tokens)[:-1]
    steps = [
        pass_time(H100, verify(TARGET, 1.0, float(cached), 3)).seconds + STEP_OVERHEAD_S + 3 * 0.37e-3
        for cached in context
    ]
    assert np.diff(answer.event_s) == pytest.approx(steps, rel=1e-9)


def test_the_same_cell_twice_is_the_same_to_the_bit() -> None:
    (one, _), (other, _) = cell("ngram-k8", 16), cell("ngram-k8", 16)
    assert one.readings == other.readings
    assert len(one.answers) == len(other.answers) > 16
    for a, b in zip(one.answers, other.answers, strict=True):
        assert (a.prompt, a.start_s, a.end_s) == (b.prompt, b.start_s, b.end_s)
        assert np.array_equal(a.event_s, b.event_s)
        assert np.array_equal(a.event_tokens, b.event_tokens)


def test_another_seed_draws_differently() -> None:
    other = LAB.model_copy(update={"sampling": LAB.sampling.model_copy(update={"seed": 10})})
    (one, _), (two, _) = cell("eagle3-k3", 4), cell("eagle3-k3", 4, other)
    assert [a.output_tokens for a in one.answers] != [a.output_tokens for a in two.answers]


def test_every_arm_writes_answers_of_the_same_length() -> None:
    lengths: list[dict[str, int | None]] = []
    for arm in ("baseline", "ngram-k2"):
        log, _ = cell(arm, 64)
        lengths.append({a.prompt.id: a.output_tokens for a in log.answers if a.end_s is not None})
    common = lengths[0].keys() & lengths[1].keys()
    assert len(common) >= 40
    assert {name: lengths[0][name] for name in common} == {name: lengths[1][name] for name in common}


def test_counters_agree_with_the_events() -> None:
    log, reading = cell("eagle3-k3", 16)
    events = sum(int(np.sum(answer.event_tokens)) for answer in log.answers)
    bursts = sum(max(0, len(answer.event_s) - 1) for answer in log.answers)
    cut = sum(1 for answer in log.answers if answer.end_s is not None)  # answers whose last burst may have been cut
    assert reading.generation_tokens == events
    assert reading.prompt_tokens == sum(answer.prompt_tokens or 0 for answer in log.answers)
    assert reading.drafts == bursts
    assert reading.draft_tokens == 3 * bursts
    assert reading.accepted_tokens == sum(reading.accepted_by_position or ())
    # vLLM counts what was accepted before the answer's end cuts the burst: up to 3 too many for each answer
    first_tokens = sum(1 for answer in log.answers if len(answer.event_s))
    surplus = reading.drafts + reading.accepted_tokens + first_tokens - events
    assert 0 < surplus <= 3 * cut
    assert (reading.preemptions, reading.prefix_cache_hits) == (0, 0)


def test_a_server_without_speculation_offers_no_draft_counters() -> None:
    _, reading = cell("baseline", 4)
    assert (reading.drafts, reading.draft_tokens, reading.accepted_tokens, reading.accepted_by_position) == (None,) * 4


def test_what_was_cut_off_keeps_its_events() -> None:
    log, reading = cell("baseline", 16)
    open_answers = [answer for answer in log.answers if answer.end_s is None]
    assert len(open_answers) == 16
    assert all(len(answer.event_s) == len(answer.event_tokens) for answer in open_answers)
    assert sum(len(answer.event_s) for answer in open_answers) > 1000
    assert all(answer.output_tokens is None and answer.finish_reason is None for answer in open_answers)
    assert max(answer.event_s[-1] for answer in open_answers if len(answer.event_s)) <= 12
    assert (reading.running, reading.waiting) == (0, 0)


def test_a_cancelled_row_leaves_the_others_faster() -> None:
    chat = prompts.load("chat", 9).measured

    async def drive(engine: Engine) -> tuple[Answer, Answer, Reading]:
        answers = [Answer(prompt, start_s=0.0) for prompt in chat[:2]]
        tasks = [asyncio.create_task(engine.send(answer, Sampling())) for answer in answers]
        await asyncio.sleep(0.5)
        tasks[0].cancel()
        await tasks[1]
        return answers[0], answers[1], await engine.read()

    cut, whole, reading = served(LAB.arm("baseline"), drive)
    assert cut.end_s is None
    assert 70 < len(cut.event_s) < 82  # half a second of steps of about 6.1 ms, and a prefill
    assert whole.output_tokens == sum(whole.event_tokens)
    assert reading.generation_tokens == len(cut.event_s) + len(whole.event_s)
    gaps = np.diff(whole.event_s)
    assert gaps[len(cut.event_s) + 1] < gaps[len(cut.event_s) - 2]


def test_prompts_beyond_the_token_budget_wait_for_the_next_step() -> None:
    lab = LAB.model_copy(update={"server": {**LAB.server, "max-num-batched-tokens": 256}})
    chat = prompts.load("chat", 9).measured[:8]
    counts = prompts.token_counts("llama-3.1", "chat")

    async def drive(engine: Engine) -> list[Answer]:
        answers = [Answer(prompt, start_s=0.0) for prompt in chat]
        await asyncio.gather(*(engine.send(answer, Sampling(max_tokens=4)) for answer in answers))
        return answers

    answers = served(lab.arm("baseline"), drive, lab)
    until = np.cumsum([counts[prompt.id] for prompt in chat])
    in_first = int((until <= 256).sum())
    assert 1 <= in_first < 8
    firsts = [answer.event_s[0] for answer in answers]
    assert len(set(firsts[:in_first])) == 1
    assert firsts[in_first] > firsts[0]  # prefilled in part in the first step, whole in the second


def test_rows_above_max_num_seqs_wait() -> None:
    lab = LAB.model_copy(update={"server": {**LAB.server, "max-num-seqs": 8}})
    log, _ = cell("baseline", 16, lab)
    assert {reading.running for reading in log.readings} <= {7.0, 8.0}
    assert {reading.waiting for reading in log.readings} <= {8.0, 9.0}


def test_identity_carries_the_badge() -> None:
    async def drive(engine: Engine) -> str:
        return engine.identity.source

    assert served(LAB.arm("baseline"), drive) == "simulated (h100-sxm)"


def test_a_draft_model_of_another_vocabulary_will_not_start() -> None:
    arm = LAB.arm("draft-1b-k3")
    arm = changed(arm, simulated={**arm.simulated.model_dump(), "shape": "smollm2-135m"})  # type: ignore[union-attr]
    with pytest.raises(EngineFailure, match=r"128,256 tokens.*49,152") as failure:
        cell(arm, 1)
    assert failure.value.kind == "bad configuration"


def test_a_target_too_large_for_the_device_runs_out_of_memory() -> None:
    lab = changed(LAB, simulated={**LAB.simulated.model_dump(), "shape": "llama-3-70b"})  # type: ignore[union-attr]
    with pytest.raises(EngineFailure, match="has room for 0 beside the weights") as failure:
        cell("baseline", 1, lab)
    assert failure.value.kind == "out of memory"


def test_a_concurrency_whose_cache_does_not_fit_runs_out_of_memory() -> None:
    # 0.85 x 40 GB - 16.06 GB of weights leave 136,871 tokens; 256 answers of 512 tokens alone are 131,072
    lab = changed(
        LAB,
        simulated={**LAB.simulated.model_dump(), "device": "a100-40gb"},  # type: ignore[union-attr]
        server={**LAB.server, "gpu-memory-utilization": 0.85},
    )
    with pytest.raises(EngineFailure, match=r"256 rows of up to \d+ tokens .* has room for 136,871 beside"):
        cell("baseline", 1, lab)


@pytest.mark.parametrize(
    ("lab_change", "arm_change", "message"),
    [
        ({"simulated": None}, {}, r"lab09/lab\.yml: simulated: nothing to simulate with"),
        ({"answers": {}}, {}, r"lab09/lab\.yml: simulated\.answers\.chat: missing"),
        ({"device": "tpu"}, {}, r"lab09/lab\.yml: simulated\.device: unknown device 'tpu'; .*h100-sxm"),
        ({}, {"simulated": None}, r"eagle3-k3\.yml: simulated: nothing to simulate the drafter with"),
        ({}, {"shape": None}, r"eagle3-k3\.yml: simulated\.shape: missing"),
        ({}, {"shape": "eagle9"}, r"eagle3-k3\.yml: simulated\.shape: unknown shape 'eagle9'"),
        ({}, {"acceptance": {}}, r"eagle3-k3\.yml: simulated\.acceptance\.chat: missing"),
        ({}, {"acceptance": {"chat": [0.5]}}, r"simulated\.acceptance\.chat: 1 draft positions; .* each of the 3"),
        ({}, {"server": {"max-num-batched-tokens": 512}}, r"eagle3-k3\.yml: server\.max-num-batched-tokens: .*1024"),
        ({}, {"server": {"max-num-seqs": "many"}}, r"eagle3-k3\.yml: server\.max-num-seqs: found 'many'"),
        ({}, {"server": {"gpu-memory-utilization": 2}}, r"server\.gpu-memory-utilization: found 2"),
    ],
)
def test_a_missing_assumption_names_its_file_and_key(
    lab_change: dict[str, Any], arm_change: dict[str, Any], message: str
) -> None:
    def with_change(model: Any, change: dict[str, Any]) -> Any:
        if not change or change.keys() & {"simulated", "server"}:
            return changed(model, **change)
        return changed(model, simulated={**model.simulated.model_dump(), **change})

    lab, arm = with_change(LAB, lab_change), with_change(LAB.arm("eagle3-k3"), arm_change)
    with pytest.raises(UserError, match=message):
        simulated.opening(lab, arm, "chat")


def test_f12_a_schedule_is_refused_since_a_requests_drafts_are_drawn_when_it_starts() -> None:
    arm = LAB.arm("ngram-k8")
    assert arm.speculation is not None
    ranges = {"num_speculative_tokens_per_batch_size": [[1, 32, 8], [33, 256, 0]]}
    with pytest.raises(UserError, match=r"ngram-k8\.yml: num_spec.*: a schedule, .* choose another engine"):
        simulated.opening(LAB, changed(arm, speculation=arm.speculation.model_dump() | ranges), "chat")


def test_a_lab_that_is_not_simulated_says_so() -> None:
    cpu = labs.load("cpu-smollm2")
    with pytest.raises(UserError, match=r"cpu-smollm2/lab\.yml: simulated: nothing to simulate with"):
        simulated.opening(cpu, cpu.arm("baseline"), "chat")


def test_a_prompt_without_a_count_is_no_endless_loop() -> None:
    prompt = dataclasses.replace(prompts.load("chat", 9).measured[0], id="chat/unknown")

    async def drive(engine: Engine) -> None:
        await engine.send(Answer(prompt, start_s=0.0), Sampling())

    with pytest.raises(EngineFailure, match="no stored token count for prompt 'chat/unknown'"):
        served(LAB.arm("baseline"), drive)
