"""The mock's engine: what a client measures on it is what its script says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import numpy as np
import pytest

from speclab.engines.base import Answer, Reading
from speclab.engines.endpoint import Endpoint
from speclab.engines.mock import MockServer, Script
from speclab.engines.mock_batch import RunningBatch
from speclab.engines.mock_rows import Row
from speclab.engines.mock_script import Acceptance, Change
from speclab.engines.virtual_time import VirtualTimeLoop
from speclab.lab import Sampling
from speclab.prompts.base import Prompt

Result = TypeVar("Result")


def served(script: Script, ask: Callable[[Endpoint], Awaitable[Result]]) -> Result:
    async def main() -> Result:
        async with MockServer(script) as server, Endpoint(server.url, "mock", "nowhere") as endpoint:
            return await ask(endpoint)

    return asyncio.run(main())


async def answered(endpoint: Endpoint, text: str, most: int = 512) -> Answer:
    answer = Answer(Prompt("chat", "chat/00", text), start_s=asyncio.get_running_loop().time())
    await endpoint.send(answer, Sampling(max_tokens=most))
    assert answer.error is None
    return answer


def quick(**given: Any) -> Script:
    return Script.model_validate({"step_ms": 1, **given})


def played(script: Script, rows: int, length_s: float, after: Callable[[RunningBatch], None] = lambda _: None) -> Any:
    """Return a batch after some virtual time with some rows from its start, and each row's times and tokens."""

    async def main() -> tuple[RunningBatch, list[list[tuple[float, int]]]]:
        loop, batch = asyncio.get_running_loop(), RunningBatch(script)
        events: list[list[tuple[float, int]]] = [[] for _ in range(rows)]

        def write_to(mine: list[tuple[float, int]]) -> Callable[[Row], None]:
            return lambda row: mine.append((loop.time(), row.tokens))

        for number, mine in enumerate(events):
            batch.add(Row(script, f"prompt {number}", {}, number, write_to(mine)))
        await asyncio.sleep(length_s)
        after(batch)
        batch.stop()
        return batch, events

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main())


def test_rows_in_flight_share_their_steps() -> None:
    async def ask(endpoint: Endpoint) -> tuple[list[Answer], Reading]:
        answers = await asyncio.gather(*(answered(endpoint, text) for text in ("one", "two", "three")))
        return answers, await endpoint.read()

    # each is served within a few milliseconds of the others: in the first step or in the second
    answers, reading = served(Script(step_ms=200, answer_tokens=(4, 4)), ask)
    assert [answer.output_tokens for answer in answers] == [4, 4, 4]
    assert reading.steps is not None
    assert 4 <= reading.steps <= 5
    assert reading.generation_tokens == 12
    assert reading.running == 0
    assert reading.drafts is None


def test_a_prompt_has_its_own_length_below_the_most_that_was_asked_for() -> None:
    async def ask(endpoint: Endpoint) -> list[tuple[int | None, str | None]]:
        answers = [await answered(endpoint, text, most=6) for text in [*"abcde", "a"]]
        return [(answer.output_tokens, answer.finish_reason) for answer in answers]

    answers = served(quick(answer_tokens=(3, 7)), ask)
    assert answers[0] == answers[-1]
    assert {tokens for tokens, _ in answers} == {3, 4, 5, 6}
    # a prompt's length is 3 and the sum of its bytes modulo 5: "a" (97) 5, "b" 6, "c" 7, of which 6 are given
    assert answers[:3] == [(5, "stop"), (6, "stop"), (6, "length")]


@pytest.mark.parametrize(("draws", "within"), [("even", 0.02), ("random", 0.1)])
def test_what_is_accepted_is_what_the_script_says(draws: str, within: float) -> None:
    rates, draft_rate = (0.8, 0.5, 0.2), 0.5

    async def ask(endpoint: Endpoint) -> tuple[Answer, Answer, Reading]:
        first = await answered(endpoint, "revise this", most=800)
        return first, await answered(endpoint, "revise this", most=800), await endpoint.read()

    some = Acceptance(prompt_has="revise", rates=rates, draft_rate=draft_rate)
    script = quick(
        acceptance=[some, Acceptance(rates=(0.0, 0.0, 0.0))], answer_tokens=[800, 800], draws=draws, step_ms=0
    )
    answer, again, reading = served(script, ask)
    assert list(answer.event_tokens) == list(again.event_tokens), "the same prompt, the same draws"
    decode = np.asarray(answer.event_tokens[1:])
    assert answer.event_tokens[0] == 1
    assert decode.mean() == pytest.approx(1 + draft_rate * sum(rates), rel=within)
    assert reading.drafts is not None
    assert reading.steps is not None
    assert reading.drafts / reading.steps == pytest.approx(draft_rate, rel=within)
    assert reading.draft_tokens == 3 * reading.drafts
    assert reading.accepted_by_position is not None
    assert np.array(reading.accepted_by_position) / reading.drafts == pytest.approx(rates, abs=within)
    assert reading.generation_tokens == answer.output_tokens + again.output_tokens  # type: ignore[operator]


def test_a_client_that_leaves_is_in_no_further_step() -> None:
    async def ask(endpoint: Endpoint) -> tuple[float | None, Answer]:
        leaving = [asyncio.create_task(answered(endpoint, text)) for text in ("one", "two")]
        while (await endpoint.read()).running != 2:
            pass
        for task in leaving:
            task.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)
        answer = await asyncio.wait_for(answered(endpoint, "three"), timeout=10)
        return (await endpoint.read()).running, answer

    # two rows would take a minute for a step, one takes a millisecond
    running, answer = served(Script(step_ms=((1, 1), (2, 60_000)), answer_tokens=(4, 4)), ask)
    assert answer.output_tokens == 4
    assert running == 0


def test_steps_keep_their_schedule_and_a_prompt_makes_one_longer() -> None:
    # the first step reads both prompts and takes 30 + 50 ms, each of the others 50 ms: 1 + 18 steps in a second
    batch, events = played(Script(step_ms=50, prefill_ms=30, answer_tokens=(100, 100)), rows=2, length_s=1.0)
    times = [time_s for time_s, _ in events[0]]
    assert times == pytest.approx([0.08 + 0.05 * step for step in range(19)])
    assert events[0] == events[1]
    sent = batch.sent()
    assert (sent.steps, sent.events, sent.tokens) == (19, 38, 38)
    assert (sent.late_p99_ms, sent.gap_p50_ms) == (pytest.approx(0), pytest.approx(50))
    inside = batch.sent(from_s=0.1, to_s=0.2)  # steps at 0.13 and 0.18 s
    assert (inside.steps, inside.events) == (2, 4)


def test_idle_time_is_no_gap() -> None:
    async def main() -> tuple[int, float | None]:
        script = Script(step_ms=10, answer_tokens=(3, 3))
        batch = RunningBatch(script)
        for number in range(2):
            batch.add(Row(script, "prompt", {}, number, lambda row: None))
            await asyncio.sleep(5)
        sent = batch.sent()
        return sent.steps, sent.gap_mean_ms

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(main()) == (6, pytest.approx(10))


def test_rows_beyond_the_cap_wait_for_a_place() -> None:
    script = Script(step_ms=10, answer_tokens=(5, 5), max_running=2)
    in_between = []
    _, events = played(script, rows=5, length_s=0.045, after=lambda batch: in_between.append(len(batch.waiting)))
    assert [len(of_row) for of_row in events] == [4, 4, 0, 0, 0]
    assert in_between == [3]
    _, events = played(script, rows=5, length_s=1)
    assert [of_row[0][0] for of_row in events] == pytest.approx([0.01, 0.01, 0.06, 0.06, 0.11])
    assert [len(of_row) for of_row in events] == [5] * 5


def test_f13_a_preempted_row_loses_its_step_and_no_token() -> None:
    script = Script(step_ms=10, answer_tokens=(4, 4), preempt_every=3)
    batch, events = played(script, rows=2, length_s=1)
    assert [len(of_row) for of_row in events] == [4, 4]
    assert [round(1000 * time_s) for time_s, _ in events[1]] == [10, 20, 40, 50]
    assert batch.counters[0].preemptions == 1
    assert batch.counters[0].prompt_tokens == 3 * 7, "its prompt is read again"


def test_f6_acceptance_and_step_time_change_at_a_moment() -> None:
    change = Change(after_s=1.0, step_ms=20, acceptance=(Acceptance(rates=(0.0, 0.0)),))
    script = Script(
        step_ms=10, answer_tokens=(1000, 1000), acceptance=(Acceptance(rates=(1.0, 1.0)),), changes=(change,)
    )
    _, events = played(script, rows=1, length_s=2.005)
    before = [tokens for time_s, tokens in events[0] if time_s < 1.005]
    after = [tokens for time_s, tokens in events[0] if time_s > 1.005]
    assert before == [1, *[3] * 99]
    assert after == [1] * 50


def test_engines_share_the_requests_and_count_apart() -> None:
    batch, _ = played(Script(step_ms=10, answer_tokens=(3, 3), engines=2), rows=3, length_s=1)
    assert [counters.tokens for counters in batch.counters] == [6, 3]
    assert [counters.steps for counters in batch.counters] == [3, 3]
