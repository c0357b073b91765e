"""The mock with a batch: what a client measures on it is what its script says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import numpy as np
import pytest

from speclab.engines.base import Answer, Reading
from speclab.engines.endpoint import Endpoint
from speclab.engines.mock_steps import Acceptance, SteppingServer, Steps
from speclab.lab import Sampling
from speclab.prompts.base import Prompt

Result = TypeVar("Result")


def served(steps: Steps, ask: Callable[[Endpoint], Awaitable[Result]]) -> Result:
    async def main() -> Result:
        async with SteppingServer(steps, "mock") as server, Endpoint(server.url, "mock", "nowhere") as endpoint:
            return await ask(endpoint)

    return asyncio.run(main())


async def answered(endpoint: Endpoint, text: str, most: int = 512) -> Answer:
    answer = Answer(Prompt("chat", "chat/00", text), start_s=asyncio.get_running_loop().time())
    await endpoint.send(answer, Sampling(max_tokens=most))
    assert answer.error is None
    return answer


def quick(**given: object) -> Steps:
    return Steps.model_validate({"step_ms": [[1, 1], [2, 1]], **given})


@pytest.mark.parametrize(("rows", "seconds"), [(1, 0.010), (2, 0.015), (3, 0.020), (7, 0.040), (9, 0.050)])
def test_a_step_takes_the_time_on_the_line_between_two_sizes(rows: int, seconds: float) -> None:
    steps = Steps(step_ms=((1, 10), (3, 20), (7, 40)))
    assert steps.seconds(rows) == pytest.approx(seconds)


def test_rows_in_flight_share_their_steps() -> None:
    async def ask(endpoint: Endpoint) -> tuple[list[Answer], Reading]:
        answers = await asyncio.gather(*(answered(endpoint, text) for text in ("one", "two", "three")))
        return answers, await endpoint.read()

    # each is served within a few milliseconds of the others: in the first step or in the second
    answers, reading = served(Steps(step_ms=((1, 200), (3, 200)), answer_tokens=(4, 4)), ask)
    assert [answer.output_tokens for answer in answers] == [4, 4, 4]
    assert reading.steps is not None
    assert 4 <= reading.steps <= 5
    assert reading.generation_tokens == 12
    assert reading.running == 0
    assert reading.drafts is None


def test_a_prompt_has_its_own_length_below_the_most_that_was_asked_for() -> None:
    async def ask(endpoint: Endpoint) -> list[int | None]:
        texts = [*"abcde", "a"]
        return [(await answered(endpoint, text, most=6)).output_tokens for text in texts]

    lengths = served(quick(answer_tokens=(3, 7)), ask)
    assert lengths[0] == lengths[-1]
    assert set(lengths) == {3, 4, 5, 6}


def test_what_is_accepted_is_what_the_script_says() -> None:
    rates, draft_rate = (0.8, 0.5, 0.2), 0.5

    async def ask(endpoint: Endpoint) -> tuple[Answer, Answer, Reading]:
        first = await answered(endpoint, "revise this", most=400)
        return first, await answered(endpoint, "revise this", most=400), await endpoint.read()

    some = Acceptance(prompt_has="revise", rates=rates, draft_rate=draft_rate)
    steps = quick(acceptance=[some, Acceptance(rates=(0.0, 0.0, 0.0))], answer_tokens=[400, 400])
    answer, again, reading = served(steps, ask)
    assert list(answer.event_tokens) == list(again.event_tokens), "the same prompt, the same draws"
    decode = np.asarray(answer.event_tokens[1:])
    assert answer.event_tokens[0] == 1
    assert decode.mean() == pytest.approx(1 + draft_rate * sum(rates), rel=0.05)
    assert reading.drafts is not None
    assert reading.steps is not None
    assert reading.drafts / reading.steps == pytest.approx(draft_rate, rel=0.05)
    assert reading.draft_tokens == 3 * reading.drafts
    assert reading.accepted_by_position is not None
    assert np.array(reading.accepted_by_position) / reading.drafts == pytest.approx(rates, abs=0.05)
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
    running, answer = served(Steps(step_ms=((1, 1), (2, 60_000)), answer_tokens=(4, 4)), ask)
    assert answer.output_tokens == 4
    assert running == 0
