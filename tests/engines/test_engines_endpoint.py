from __future__ import annotations

import asyncio
import errno
import gc
import itertools
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import pytest
from arrived import EVENT_STREAM, Answers, chunked, raw_server, response, sized
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionChunk

from speclab import lab as labs
from speclab.engines.base import Answer, EngineFailure, Reading
from speclab.engines.endpoint import Endpoint, NotServing, opening
from speclab.engines.mock import MockServer, Script
from speclab.lab import Phases, Sampling
from speclab.load.closed_loop import CellLog, run_cell
from speclab.prompts.base import Prompt, PromptSet

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


# servers that send given bytes


def chunk(content: str, tokens: int, finish: str | None = None) -> bytes:
    body = {
        "choices": [{"index": 0, "delta": {"content": content}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 7, "completion_tokens": tokens, "total_tokens": 7 + tokens},
    }
    return b"data: " + json.dumps(body).encode() + b"\n\n"


WHOLE = response(chunk("a", 1), chunk("b", 2, "stop"), b"data: [DONE]\n\n")


def raw(
    answers: Answers,
    ask: Callable[[Endpoint], Awaitable[Result]],
    *,
    api_key: str = "none",
    user: str = "",
    **given: Any,
) -> Result:
    async def main() -> Result:
        async with (
            asyncio.timeout(60),
            raw_server(answers) as url,
            Endpoint(url.replace("//", f"//{user}"), "m", "nowhere", api_key=api_key, **given) as endpoint,
        ):
            return await ask(endpoint)

    return asyncio.run(main())


def by_path(**pages: bytes | Sequence[bytes | None]) -> Answers:
    """Return answers by the path's last word; 404 for any other."""

    def answers(_: int, asked: bytes) -> Sequence[bytes | None]:
        word = asked.split(b" ")[1].rpartition(b"/")[2].decode()
        page = pages.get(word, sized("404 Not Found", b""))
        return [page] if isinstance(page, bytes) else page

    return answers


@pytest.mark.parametrize("usage", ["running", "final"])
def test_an_answer_is_what_the_openai_client_reads(usage: Any) -> None:
    async def ask(server: MockServer, endpoint: Endpoint) -> tuple[Answer, list[ChatCompletionChunk]]:
        ours = await answered(endpoint, Sampling(temperature=0, max_tokens=9))
        async with AsyncOpenAI(base_url=server.url, api_key="none", max_retries=0) as client:
            stream = await client.chat.completions.create(
                model="mock",
                messages=[{"role": "user", "content": ours.prompt.text}],
                stream=True,
                stream_options={"include_usage": True, "continuous_usage_stats": True},  # type: ignore[typeddict-unknown-key]
            )
            return ours, [part async for part in stream]

    ours, theirs = served(Script(tokens_per_event=(1, 4, 2), usage=usage), ask)
    choices = [part.choices[0] for part in theirs if part.choices]
    assert ours.text == "".join(choice.delta.content or "" for choice in choices)
    assert ours.finish_reason == choices[-1].finish_reason
    last = theirs[-1].usage
    assert last is not None
    assert (ours.prompt_tokens, ours.output_tokens) == (last.prompt_tokens, last.completion_tokens)
    with_text = [part for part in theirs if part.choices and part.choices[0].delta.content]
    assert len(ours.event_s) == len(with_text)
    if usage == "running":
        totals = [0, *(part.usage.completion_tokens for part in with_text if part.usage)]
        assert list(ours.event_tokens) == np.diff(totals).tolist()


def test_within_a_load_answers_wait_to_be_settled_and_are_the_same_then() -> None:
    prompts = PromptSet(measured=(Prompt("chat", "chat/00", "Why is the sky blue?"),), warm_up=())

    async def ask(server: MockServer, endpoint: Endpoint) -> tuple[Answer, int, Answer]:
        sampling = Sampling()
        with endpoint.load(prompts, sampling):
            inside = await answered(endpoint, sampling)
            unread = len(inside.event_s)
        inside.settle()
        outside = await answered(endpoint, sampling)
        assert server.seen.bodies[0] == server.seen.bodies[1]
        return inside, unread, outside

    inside, unread, outside = served(Script(tokens_per_event=(1, 2) * 9, step_ms=1), ask)
    assert unread == 0
    assert list(inside.event_tokens) == list(outside.event_tokens) == [1, 2] * 9
    assert (inside.text, inside.output_tokens, inside.error) == (outside.text, 27, None)


def test_beyond_the_memory_for_it_answers_are_read_as_they_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("speclab.engines.endpoint.MOST_UNREAD_BYTES", 8000)
    prompts = PromptSet(measured=(Prompt("chat", "chat/00", "Why is the sky blue?"),), warm_up=())

    async def ask(_: MockServer, endpoint: Endpoint) -> list[int]:
        sampling = Sampling()
        with endpoint.load(prompts, sampling):
            return [len((await answered(endpoint, sampling)).event_s) for _ in range(2)]

    # an answer of 18 events is some 5 kB long: there is room for one
    assert served(Script(tokens_per_event=(1, 2) * 9, step_ms=1), ask) == [0, 18]


def test_a_client_without_a_connection_left_is_no_dead_server(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(_: MockServer, endpoint: Endpoint) -> Answer:
        async def none_left(*_: object, **__: object) -> None:
            raise OSError(errno.EMFILE, "Too many open files")

        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", none_left)
        return await answered(endpoint)

    with pytest.raises(EngineFailure) as failure:
        served(Script(), ask)
    assert failure.value.kind == "client error"
    assert "Too many open files" in failure.value.reason


def test_the_collector_of_cycles_rests_within_a_load_and_runs_again_after_it() -> None:
    async def ask(_: MockServer, endpoint: Endpoint) -> tuple[bool, bool]:
        with endpoint.load(PromptSet((), ()), Sampling()):
            inside = gc.isenabled()
        return inside, gc.isenabled()

    assert served(Script(), ask) == (False, True)


def test_a_step_of_the_wall_clock_moves_no_event(monkeypatch: pytest.MonkeyPatch) -> None:
    hours = itertools.count()
    monkeypatch.setattr(time, "time", lambda: next(hours) * 3600.0)
    answer = served(Script(tokens_per_event=(1,) * 20), lambda _, endpoint: answered(endpoint))
    assert len(answer.event_s) == 20
    assert answer.end_s is not None
    assert answer.end_s - answer.start_s < 60


def test_f2_a_request_stuck_after_its_role_chunk_is_given_up_with_its_own_reason() -> None:
    role = b'data: {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}\n\n'

    async def ask(endpoint: Endpoint) -> Answer:
        stuck = Answer(Prompt("chat", "chat/01", "Get stuck."), start_s=0.0)
        sent = asyncio.create_task(endpoint.send(stuck, Sampling()))
        while not sent.done():
            assert (await answered(endpoint)).error is None
        return stuck

    silent = [EVENT_STREAM + chunked(role), None]
    answer = raw(lambda _, asked: silent if b"Get stuck." in asked else [WHOLE], ask, hung_after_s=0.4)
    assert answer.error is not None
    assert answer.error.startswith("stuck: silent for ")
    assert answer.end_s is not None


def test_an_answer_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("speclab.engines.silence.BYTES_BESIDE", 1000)
    sent = chunked(chunk("x" * 1000, 1))

    def endless(number: int, _: bytes) -> Iterator[bytes]:
        yield EVENT_STREAM
        while True:
            yield sent

    answer = raw(endless, lambda endpoint: answered(endpoint, Sampling(max_tokens=1)), hung_after_s=0.5)  # type: ignore[arg-type]
    assert str(answer.error).startswith("endless: ")


def test_only_comments_are_silence() -> None:
    def pings(number: int, _: bytes) -> Iterator[bytes]:
        yield EVENT_STREAM
        while True:
            yield chunked(b": ping\n\n")

    with pytest.raises(EngineFailure) as failure:
        raw(pings, answered, hung_after_s=0.3)  # type: ignore[arg-type]
    assert failure.value.kind == "hung"


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
def test_a_refusal_says_how_long_it_asks_to_wait(status: str) -> None:
    body = b'{"error": {"message": "busy"}}'
    answer = raw(by_path(completions=sized(status, body, "Retry-After: 3")), answered)
    assert (answer.error, answer.retry_after_s) == (f"HTTP {status[:3]}: busy", 3.0)
    plain = raw(by_path(completions=sized(status, body)), answered)
    assert (plain.error, plain.retry_after_s) == (f"HTTP {status[:3]}: busy", None)


PAGE = b'vllm:generation_tokens_total{engine="0"} 5.0\n'


def test_g10_the_key_is_sent_to_the_page_of_counters() -> None:
    def guarded(_: int, asked: bytes) -> Sequence[bytes]:
        return [sized("200 OK", PAGE) if b"\r\nAuthorization: Bearer sk-1\r\n" in asked else sized("401 No", b"")]

    assert raw(guarded, Endpoint.read, api_key="sk-1").generation_tokens == 5
    assert raw(guarded, Endpoint.read, api_key="other").generation_tokens is None


def test_a_page_of_counters_that_moved_is_followed() -> None:
    def moved(_: int, asked: bytes) -> Sequence[bytes]:
        if asked.startswith(b"GET /metrics/ "):
            return [sized("200 OK", PAGE)]
        return [sized("307 Temporary Redirect", b"", "Location: /metrics/")]

    assert raw(moved, Endpoint.read).generation_tokens == 5


def test_g3_no_message_holds_the_key_or_the_password() -> None:
    quoting = sized("401 Unauthorized", b'{"error": {"message": "quota exceeded for key sk-planted"}}')
    assert raw(by_path(completions=quoting), answered, api_key="sk-planted").error == (
        "HTTP 401: quota exceeded for key [redacted]"
    )
    header = sized("401 No", b"bad header: Basic bWU6cGxhbnRlZA== (planted)")
    error = raw(by_path(completions=header), answered, user="me:planted@").error
    assert error == "HTTP 401: bad header: Basic [redacted] ([redacted])"

    async def written(endpoint: Endpoint) -> str:
        return repr(await endpoint.write(Prompt("chat", "chat/00", "Why?"), Sampling()))

    assert "sk-planted" not in raw(by_path(completions=quoting), written, api_key="sk-planted")
    shown = json.dumps({"data": [{"id": "m", "owned_by": "sk-planted"}]}).encode()
    pages = by_path(models=sized("200 OK", shown), completions=WHOLE)

    async def version(endpoint: Endpoint) -> str:
        await endpoint.probe()
        return endpoint.identity.version

    assert raw(pages, version, api_key="sk-planted") == "[redacted]"


@pytest.mark.parametrize(
    ("api_key", "user", "said"),
    [
        ("none", "", "set OPENAI_API_KEY to its key"),
        ("sk-wrong", "", r"the key in \$OPENAI_API_KEY was refused"),
        ("none", "me:wrong@", "the user and password in the address were refused"),
    ],
)
def test_g10_a_wrong_key_is_not_a_missing_one(api_key: str, user: str, said: str) -> None:
    with pytest.raises(NotServing, match=f"HTTP 401; {said}"):
        raw(by_path(models=sized("401 No", b"{}")), Endpoint.probe, api_key=api_key, user=user)


def test_g11_a_server_with_usage_only_at_the_end_serves() -> None:
    served(Script(usage="final"), lambda _, endpoint: endpoint.probe())


def test_f2_slots_that_are_stuck_from_the_start_are_freed_and_each_keeps_its_error() -> None:
    prompts = PromptSet(
        measured=(Prompt("chat", "chat/00", "Go on."),),
        warm_up=(Prompt("chat", "warm/0", "Go on."), Prompt("chat", "warm/1", "Get stuck.")),
    )
    phases = Phases(length_s=3.0, drop_first_s=0.5, drop_last_s=0.5)
    role = chunked(b'data: {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}\n\n')

    async def ask(endpoint: Endpoint) -> CellLog:
        return await run_cell(endpoint, prompts, 8, phases, Sampling())

    log = raw(
        lambda _, asked: [EVENT_STREAM + role, None] if b"Get stuck." in asked else [WHOLE], ask, hung_after_s=1.0
    )
    assert log.failure is None
    assert [bool(answer.error) for answer in log.answers[:8]] == [False, True] * 4
    assert all(str(answer.error).startswith("stuck: ") for answer in log.answers[1:8:2])
    assert {answer.error for answer in log.answers[8:]} == {None}
