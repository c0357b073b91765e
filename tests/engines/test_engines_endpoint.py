from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from speclab import lab as labs
from speclab.engines.base import Answer, EngineFailure, Reading
from speclab.engines.endpoint import Endpoint, NotServing, opening
from speclab.engines.mock import MockServer, Script
from speclab.lab import Sampling
from speclab.prompts.base import Prompt

Result = TypeVar("Result")


def served(script: Script, ask: Callable[[MockServer, Endpoint], Awaitable[Result]], **given: float) -> Result:
    async def main() -> Result:
        async with (
            MockServer(script) as server,
            Endpoint(server.url, "mock", "nowhere", hung_after_s=given.get("hung_after_s", 20.0)) as endpoint,
        ):
            return await ask(server, endpoint)

    return asyncio.run(main())


async def answered(endpoint: Endpoint, sampling: Sampling | None = None) -> Answer:
    answer = Answer(Prompt("chat", "chat/00", "Why is the sky blue?"), start_s=asyncio.get_running_loop().time())
    await endpoint.send(answer, sampling or Sampling())
    return answer


def test_an_answer_is_counted_by_the_servers_usage() -> None:
    answer = served(Script(tokens_per_event=(1, 4, 2)), lambda _, endpoint: answered(endpoint))
    assert list(answer.event_tokens) == [1, 4, 2]
    assert (answer.prompt_tokens, answer.output_tokens, answer.finish_reason) == (7, 7, "stop")
    assert (answer.text, answer.error) == ("xxxxxxx", None)
    assert answer.end_s is not None
    assert answer.start_s <= answer.event_s[0] <= answer.event_s[-1] <= answer.end_s


def test_the_request_says_what_the_lab_says_and_nothing_of_its_own() -> None:
    async def ask(server: MockServer, endpoint: Endpoint) -> list[dict[str, object]]:
        await answered(endpoint, Sampling(temperature=0, max_tokens=33, seed=9))
        await answered(endpoint, Sampling(ignore_eos=True))
        return server.seen.bodies

    plain, ignoring = served(Script(), ask)
    assert plain == {
        "model": "mock",
        "messages": [{"role": "user", "content": "Why is the sky blue?"}],
        "temperature": 0.0,
        "max_tokens": 33,
        "seed": 9,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }
    assert ignoring["ignore_eos"] is True


@pytest.mark.parametrize(
    ("script", "said", "tokens"),
    [
        (Script(status=404), "HTTP 404: told to refuse", []),
        (Script(status=500), "HTTP 500: told to refuse", []),
        (Script(close_after=2), "the server closed the stream after 2 tokens", [1, 1]),
        (Script(garbage_after=1), "the stream holds an event that is no JSON object: {not json", [1]),
        (Script(usage="none"), "the server sends no usage with a stream", [0, 0, 0]),
    ],
)
def test_a_request_that_fails_says_why_and_keeps_what_had_come(script: Script, said: str, tokens: list[int]) -> None:
    answer = served(script, lambda _, endpoint: answered(endpoint))
    assert answer.error is not None
    assert answer.error.startswith(said)
    assert "\n" not in answer.error
    assert list(answer.event_tokens) == tokens
    assert answer.end_s is not None


def test_a_cancelled_request_is_aborted_at_the_server_and_keeps_its_tokens() -> None:
    async def ask(server: MockServer, endpoint: Endpoint) -> tuple[Answer, int]:
        answer = Answer(Prompt("chat", "chat/00", "Go on."), start_s=0.0)
        task = asyncio.create_task(endpoint.send(answer, Sampling()))
        while server.seen.in_flight == 0:
            await asyncio.sleep(0.001)
        for _ in range(100):  # what the server has sent by now arrives
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.stop()
        answer.settle()
        return answer, server.seen.aborted

    answer, aborted = served(Script(hang_after=2), ask)
    assert (list(answer.event_tokens), answer.text, answer.end_s, answer.output_tokens) == ([1, 1], "xx", None, None)
    assert aborted == 1


def test_a_server_silent_towards_all_is_hung() -> None:
    with pytest.raises(EngineFailure) as failure:
        served(Script(hang_after=1), lambda _, endpoint: answered(endpoint), hung_after_s=0.2)
    assert failure.value.kind == "hung"
    assert "no token for any request in 0.2 s" in failure.value.reason


def test_a_server_that_goes_away_has_died() -> None:
    async def ask(server: MockServer, endpoint: Endpoint) -> Answer:
        await answered(endpoint)
        await server.stop()
        return await answered(endpoint)

    with pytest.raises(EngineFailure) as failure:
        served(Script(), ask)
    assert failure.value.kind == "died mid-run"


def test_counters_are_those_of_what_was_sent() -> None:
    async def ask(_: MockServer, endpoint: Endpoint) -> tuple[Reading, Reading]:
        before = await endpoint.read()
        await answered(endpoint)
        return before, await endpoint.read()

    before, after = served(Script(tokens_per_event=(1, 4, 2), k=3), ask)
    # the first step reads the prompt; then two drafts of three, 3 and 1 of them accepted
    assert (before.drafts, after.drafts, after.draft_tokens, after.accepted_tokens) == (0, 2, 6, 4)
    assert after.accepted_by_position == (2, 1, 1)
    assert (after.generation_tokens, after.steps, after.running) == (7, 3, 0)
    assert after.at_s > before.at_s


def test_no_metrics_and_no_speculation_are_none_not_zero() -> None:
    bare = served(Script(metrics=False), lambda _, endpoint: endpoint.read())
    assert bare == Reading(at_s=bare.at_s)
    plain = served(Script(k=None), lambda _, endpoint: endpoint.read())
    assert plain.generation_tokens == 0
    assert (plain.drafts, plain.accepted_by_position) == (None, None)


def test_the_key_comes_from_the_environment_and_stays_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key")

    async def main() -> str:
        async with MockServer(Script(model="meta-llama/Llama-3.1-8B-Instruct")) as server:
            lab = labs.load("lab09")
            async with opening(lab, lab.arm("baseline"), server.url, "here").engine() as engine:
                return repr(engine.identity)

    assert "secret-key" not in asyncio.run(main())


def open_lab09(script: Script | None, path: str = "/v1") -> EngineFailure:
    """Return how opening lab09's baseline fails at a mock server, or where no server is."""

    async def main() -> None:
        async with MockServer(script) as server:
            url = server.url.removesuffix("/v1") + path
            if script is None:
                await server.stop()
            lab = labs.load("lab09")
            async with opening(lab, lab.arm("baseline"), url, "here").engine():
                raise AssertionError("opened")

    with pytest.raises(EngineFailure) as failure:
        asyncio.run(main())
    return failure.value


TARGET = "meta-llama/Llama-3.1-8B-Instruct"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (None, "no server answers at http://127.0.0.1:"),
        (Script(listed=False), "HTTP 404; give the address of an OpenAI-compatible server"),
        (Script(model="other/model"), f"serves other/model, not {TARGET}"),
        (Script(model=TARGET, status=500), "does not answer a completion: HTTP 500: told to refuse"),
        (Script(model=TARGET, usage="none"), "must support stream_options.include_usage"),
    ],
)
def test_an_endpoint_that_cannot_serve_the_lab_will_not_start(script: Script | None, said: str) -> None:
    failure = open_lab09(script)
    assert failure.kind == "will not start"
    assert said in failure.reason
    assert "\n" not in failure.reason


@pytest.mark.parametrize(
    "models", [{"data": ["m"]}, {"data": [{"object": "m"}]}, {"data": [{"id": 5}]}, {"data": None}, {"data": "ab"}, [1]]
)
def test_a_list_of_models_that_is_none_is_named(models: object) -> None:
    failure = open_lab09(Script(models=json.dumps(models)))
    assert failure.kind == "will not start"
    assert "/v1/models does not answer as an OpenAI-compatible server" in failure.reason


def test_a_name_that_no_file_holds_is_shown_with_its_bad_part_replaced() -> None:
    assert "serves \ufffd, not" in open_lab09(Script(models='{"data": [{"id": "\\ud800"}]}')).reason


def test_messages_leave_out_the_password_of_the_address() -> None:
    async def ask(server: MockServer, _: Endpoint) -> None:
        url = server.url.replace("http://", "http://me:secret@")
        async with Endpoint(url, "mock", "nowhere") as endpoint:
            await endpoint.probe()
            assert (await answered(endpoint)).error is None
        async with Endpoint(url, "other", "nowhere") as endpoint:
            await endpoint.probe()

    with pytest.raises(NotServing) as failure:
        served(Script(), ask)
    assert "http://127.0.0.1:" in failure.value.reason
    assert "secret" not in failure.value.reason


def test_the_address_may_leave_out_v1() -> None:
    assert "serves mock, not" in open_lab09(Script(), path="").reason
    assert "serves mock, not" in open_lab09(Script(), path="/v1/").reason


def test_a_page_that_is_no_api_is_named() -> None:
    with pytest.raises(NotServing, match="HTTP 404"):
        served(Script(listed=False), lambda _, endpoint: endpoint.probe())
