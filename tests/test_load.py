"""The closed loop, against a server that counts what it gets: real sockets, no real model."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, nullcontext
from typing import cast

import numpy as np
import pytest

from speclab.engines.base import Answer, Engine, Reading
from speclab.engines.endpoint import Endpoint
from speclab.engines.mock import MockServer, Script, Seen
from speclab.engines.virtual_time import VirtualTimeLoop
from speclab.lab import Phases, Sampling
from speclab.load.closed_loop import CellLog, run_cell
from speclab.prompts.base import Prompt, PromptSet

PROMPTS = PromptSet(
    measured=tuple(Prompt("chat", f"chat/{index}", f"measured {index}") for index in range(5)),
    warm_up=tuple(Prompt("chat", f"warm/{index}", f"warm-up {index}") for index in range(3)),
)
SHORT = Phases(length_s=1.2, drop_first_s=0.3, drop_last_s=0.2)


def cell(script: Script, concurrency: int, phases: Phases = SHORT, **given: float) -> tuple[CellLog, Seen]:
    async def main() -> tuple[CellLog, Seen]:
        async with (
            MockServer(script) as server,
            Endpoint(server.url, "mock", "nowhere", hung_after_s=given.get("hung_after_s", 20.0)) as endpoint,
        ):
            return await run_cell(endpoint, PROMPTS, concurrency, phases, Sampling()), server.seen

    return asyncio.run(main())


def test_each_slot_warms_up_first_and_then_all_take_the_measured_in_order() -> None:
    log, seen = cell(Script(tokens_per_event=(1, 3), step_ms=10), concurrency=4)
    sent = [answer.prompt.id for answer in log.answers]
    assert sent[:4] == ["warm/0", "warm/1", "warm/2", "warm/0"]
    assert len(sent) > 4 + 5
    assert sent[4:] == [f"chat/{index % 5}" for index in range(len(sent) - 4)]
    assert log.warm_up_count(4) == 4
    assert sorted(seen.prompts[:4]) == ["warm-up 0", "warm-up 0", "warm-up 1", "warm-up 2"]


def test_the_slots_are_full_from_first_to_last() -> None:
    concurrency = 6
    log, seen = cell(Script(tokens_per_event=(1, 1), step_ms=20), concurrency)
    assert seen.most_in_flight == concurrency
    # a slot's next request starts when its last ended, so at every start exactly the others are in flight
    for answer in log.answers[concurrency:]:
        ended = sum(other.end_s is not None and other.end_s <= answer.start_s for other in log.answers)
        started = sum(other.start_s < answer.start_s for other in log.answers)
        assert started - ended < concurrency
    unfinished = [answer for answer in log.answers if answer.end_s is None]
    assert len(unfinished) <= concurrency
    assert all(answer.error is None for answer in log.answers)


def test_tokens_are_counted_by_event_and_agree_with_the_servers_counters() -> None:
    log, _ = cell(Script(tokens_per_event=(1, 3, 2), step_ms=10, k=3), concurrency=2)
    finished = [answer for answer in log.answers if answer.output_tokens is not None]
    assert len(finished) > 5
    assert all(list(answer.event_tokens) == [1, 3, 2] and answer.output_tokens == 6 for answer in finished)
    first, last = log.readings[0], log.readings[-1]
    assert first.generation_tokens is not None
    assert last.generation_tokens is not None
    assert first.generation_tokens < last.generation_tokens
    inside = sum(
        tokens
        for answer in log.answers
        for at_s, tokens in zip(answer.event_s, answer.event_tokens, strict=True)
        if first.at_s < at_s <= last.at_s
    )
    # what is on the wire at each border may fall on either side: at most one event of 3 in each of 2 slots, twice
    assert abs(inside - (last.generation_tokens - first.generation_tokens)) <= 2 * 2 * 3


def test_requests_that_fail_are_paused_and_the_cell_goes_on() -> None:
    log, seen = cell(Script(status=500), concurrency=2)
    assert log.failure is None
    assert all(answer.error == "HTTP 500: told to refuse" for answer in log.answers if answer.end_s is not None)
    # 1.2 s of pauses of 0.2 s: at most 7 for a slot, where an unpaused loop sends hundreds
    assert 2 <= len(seen.prompts) <= 2 * 7


def test_a_slot_that_is_refused_waits_as_long_as_the_server_asks_within_bounds() -> None:
    waits: list[float] = []

    class Refusing:
        def load(self, prompts: PromptSet, sampling: Sampling) -> AbstractContextManager[None]:
            return nullcontext()

        async def send(self, answer: Answer, sampling: Sampling) -> None:
            answer.error, answer.retry_after_s = "HTTP 429: busy", (3.0, None, 0.0, 3600.0)[len(waits) % 4]
            waits.append(asyncio.get_running_loop().time())

        async def read(self) -> Reading:
            return Reading(at_s=0.0)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        phases = Phases(length_s=14, drop_first_s=1, drop_last_s=1)
        log = runner.run(run_cell(cast("Engine", Refusing()), PROMPTS, 1, phases, Sampling()))
    assert np.diff(waits) == pytest.approx([3.0, 0.2, 0.2, 10.0])  # an hour is not waited for
    assert [answer.error for answer in log.answers] == ["HTTP 429: busy"] * 5


def test_one_closed_stream_costs_one_request() -> None:
    log, _ = cell(Script(close_after=1, tokens_per_event=(1, 1), step_ms=10), concurrency=1)
    assert log.failure is None
    assert {answer.error for answer in log.answers if answer.end_s is not None} == {
        "the server closed the stream after 1 tokens (closed)"
    }


def test_a_server_that_hangs_ends_the_cell_early_and_keeps_what_came() -> None:
    log, _ = cell(
        Script(hang_after=1, fault_from=2), 2, Phases(length_s=60, drop_first_s=5, drop_last_s=3), hung_after_s=3.0
    )
    assert log.failure is not None
    assert log.failure.kind == "hung"
    # which slot's request comes to the server first is chance; that two are answered and two hang is not
    assert sorted(list(answer.event_tokens) for answer in log.answers) == [[1], [1], [1, 1, 1], [1, 1, 1]]


def test_a_server_that_dies_ends_the_cell_early() -> None:
    async def main() -> CellLog:
        async with MockServer(Script(step_ms=10)) as server, Endpoint(server.url, "mock", "nowhere") as endpoint:
            phases = Phases(length_s=60, drop_first_s=5, drop_last_s=3)
            running = asyncio.create_task(run_cell(endpoint, PROMPTS, 3, phases, Sampling()))
            while len(server.seen.prompts) < 9:
                await asyncio.sleep(0.001)
            await server.stop()
            return await running

    log = asyncio.run(main())
    assert log.failure is not None
    assert log.failure.kind == "died mid-run"
    assert any(answer.output_tokens == 3 for answer in log.answers)


def test_a_server_without_usage_gives_no_tokens_rather_than_guessed_ones() -> None:
    log, _ = cell(Script(usage="none"), concurrency=1)
    assert log.answers
    assert all(not np.any(answer.event_tokens) for answer in log.answers)
    assert all("sends no usage" in str(answer.error) for answer in log.answers if answer.end_s is not None)


def test_g11_a_server_with_usage_at_the_end_gives_totals_and_times_but_no_tokens_of_an_event() -> None:
    log, _ = cell(Script(usage="final", tokens_per_event=(2, 2)), concurrency=1)
    ended = [answer for answer in log.answers if answer.end_s is not None]
    assert len(ended) > 2
    assert {(answer.error, answer.output_tokens, *answer.event_tokens) for answer in ended} == {(None, 4, 0, 0)}
