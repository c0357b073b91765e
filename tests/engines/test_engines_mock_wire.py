"""What the mock writes, byte for byte: read from plain sockets, by no client that could mend it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from speclab.engines.mock import MockServer, Script

RUNNING = {"include_usage": True, "continuous_usage_stats": True}


def request(path: str, body: dict[str, Any] | None = None, key: str = "") -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    head = f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\nHost: here\r\nContent-Length: {len(content)}\r\n"
    return (head + (f"Authorization: Bearer {key}\r\n" if key else "") + "\r\n").encode() + content


def completion(text: str = "hi", *, key: str = "", stream: bool = True, **options: bool) -> bytes:
    body = {"messages": [{"role": "user", "content": text}], "stream": stream, "stream_options": options or RUNNING}
    return request("/v1/chat/completions", body, key)


async def read_all(reader: asyncio.StreamReader) -> bytes:
    try:
        return await asyncio.wait_for(reader.read(-1), timeout=20)
    except ConnectionResetError:
        return b"reset"


def said(script: Script, *requests: bytes, until: bytes | None = None) -> list[bytes]:
    """Return the whole answer to each request, on a connection each; those that stay open are read up to `until`."""

    async def one(server: MockServer, sent: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.split(":")[2].split("/")[0]))
        writer.write(sent)
        whole = await (read_all(reader) if until is None else asyncio.wait_for(reader.readuntil(until), timeout=20))
        writer.close()
        return whole

    async def main() -> list[bytes]:
        async with MockServer(script) as server:
            return [await one(server, sent) for sent in requests]

    return asyncio.run(main())


def unframed(answer: bytes) -> bytes:
    """Return the body of an answer that came in HTTP chunks."""
    _, _, rest = answer.partition(b"\r\n\r\n")
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        body, rest = body + rest[:length], rest[length + 2 :]
    return body


def chunks(answer: bytes) -> list[dict[str, Any]]:
    payloads = [part.removeprefix(b"data: ") for part in unframed(answer).split(b"\n\n") if part]
    assert payloads[-1] == b"[DONE]"
    return [json.loads(payload) for payload in payloads[:-1]]


def streamed(script: Script, **options: bool) -> list[dict[str, Any]]:
    [answer] = said(script, completion(**options), until=b"\r\n0\r\n\r\n")
    return chunks(answer)


def texts(stream: list[dict[str, Any]]) -> list[str]:
    return [choice["delta"]["content"] for chunk in stream for choice in chunk["choices"]]


def test_a_stream_is_the_role_the_events_the_usage_and_the_end() -> None:
    stream = streamed(Script(tokens_per_event=(1, 3)))
    assert texts(stream) == ["", "x", "xxx"]
    assert [chunk["usage"]["completion_tokens"] for chunk in stream] == [0, 1, 4, 4]
    assert [choice["finish_reason"] for chunk in stream for choice in chunk["choices"]] == [None, None, "stop"]
    assert stream[-1]["choices"] == []
    assert stream[-1]["usage"] == {"prompt_tokens": 7, "total_tokens": 11, "completion_tokens": 4}


def test_usage_is_what_was_asked_for_and_can_be_sent() -> None:
    assert all("usage" not in chunk for chunk in streamed(Script(usage="none")))
    final = streamed(Script(usage="final"))
    assert ["usage" in chunk for chunk in final] == [False, False, False, False, True]
    assert streamed(Script(), include_usage=True) == final
    assert all("usage" not in chunk for chunk in streamed(Script(), include_usage=False))


def test_f5b_a_chunk_may_hold_one_token_of_several() -> None:
    stream = streamed(Script(tokens_per_event=(1, 3), chunk="token"))
    assert texts(stream) == ["", "x", "x", "x", "x"]
    assert [chunk["usage"]["completion_tokens"] for chunk in stream] == [0, 1, 2, 3, 4, 4]


def test_f5a_two_steps_may_come_in_one_chunk() -> None:
    stream = streamed(Script(tokens_per_event=(1, 3, 2, 1, 2), steps_per_chunk=2))
    assert texts(stream) == ["", "xxxx", "xxx", "xx"]


def test_a_chunk_is_cut_within_a_character() -> None:
    script = Script(
        tokens_per_event=(1, 2), token_text="\N{EURO SIGN}" * 200, cut_writes=True, usage="none", step_ms=20
    )

    async def main() -> list[bytes]:
        async with MockServer(script) as server:
            port = int(server.url.split(":")[2].split("/")[0])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(completion())
            parts: list[bytes] = []
            while not b"".join(parts).endswith(b"\r\n0\r\n\r\n"):
                parts.append(await asyncio.wait_for(reader.read(2**16), timeout=20))
            writer.close()
            return parts

    parts = asyncio.run(main())
    assert len(parts) > 3
    assert any(0x80 <= part[0] < 0xC0 for part in parts[1:] if part), "one begins inside a character"
    assert "".join(texts(chunks(b"".join(parts)))) == "\N{EURO SIGN}" * 600


def test_one_request_of_two_gets_nothing_after_its_role() -> None:
    async def main() -> tuple[bytes, bytes, float]:
        script = Script(hang_after=0, fault_from=1, fault_every=2)
        async with MockServer(script) as server:
            port = int(server.url.split(":")[2].split("/")[0])
            pairs = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
            whole = []
            for reader, writer in pairs:
                writer.write(completion())
                whole.append(await asyncio.wait_for(reader.readuntil(b"\n\n\r\n"), timeout=20))
            ended = await asyncio.wait_for(pairs[0][0].readuntil(b"\r\n0\r\n\r\n"), timeout=20)
            page = server.page("/metrics").decode()
            for _, writer in pairs:
                writer.close()
            return ended, whole[1], float(page.split("num_requests_running")[1].split("} ")[1].split("\n")[0])

    ended, silent, running = asyncio.run(main())
    assert texts(chunks(b"\r\n\r\n" + ended))[-3:] == ["x", "x", "x"]
    assert b'"role":"assistant"' in silent
    assert running == 1, "its server takes it to be running"


def test_streams_that_break_do_so_after_so_many_events() -> None:
    [closed] = said(Script(close_after=2), completion())
    assert closed.count(b'"content":"x"') == 2
    assert not closed.endswith(b"0\r\n\r\n")
    [reset] = said(Script(reset_after=2, step_ms=5), completion())
    assert reset == b"reset"
    [garbled] = said(Script(garbage_after=1), completion(), until=b"\r\n0\r\n\r\n")
    assert garbled.count(b'"content":"x"') == 3
    assert garbled.count(b"{not json") == 1


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("openai", {"error": {"message": "quota exceeded for key sk-1", "type": "mock", "code": 429}}),
        ("object", {"object": "error", "message": "quota exceeded for key sk-1", "type": "mock", "code": 429}),
        ("text", "quota exceeded for key sk-1"),
    ],
)
def test_g3_g10_a_refusal_says_why_in_its_servers_way_and_echoes_the_key(style: str, expected: object) -> None:
    script = Script.model_validate(
        {"status": 429, "retry_after_s": 2, "reason": "quota exceeded for key {key}", "error_style": style}
    )
    [answer] = said(script, completion(key="sk-1"), until=b"sk-1" + b"" if style == "text" else b"}")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 429 ")
    assert b"\r\nRetry-After: 2" in head
    assert (body.decode() if style == "text" else json.loads(body + b"}" * (style == "openai"))) == expected


def test_g10_an_error_may_come_in_the_stream() -> None:
    script = Script(error_after=1, error_style="object", reason="out of pages")
    [answer] = said(script, completion(), until=b"0\r\n\r\n")
    stream = chunks(answer)
    assert stream[-1] == {"object": "error", "message": "out of pages", "type": "mock", "code": 500}
    assert texts(stream[:-1]) == ["", "x"]


def test_a_request_for_no_stream_gets_one_object() -> None:
    [answer] = said(Script(tokens_per_event=(1, 2)), completion(stream=False), until=b"}}")
    whole = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert whole["choices"][0]["message"] == {"role": "assistant", "content": "xxx"}
    assert whole["usage"]["completion_tokens"] == 3


def test_requests_on_one_connection_are_answered_in_turn_however_they_are_cut() -> None:
    async def main() -> tuple[bytes, list[str]]:
        async with MockServer(Script()) as server:
            port = int(server.url.split(":")[2].split("/")[0])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            both = completion("one") + completion("two") + request("/health")
            for start in range(0, len(both), 50):
                writer.write(both[start : start + 50])
                await writer.drain()
            for _ in range(2):
                await asyncio.wait_for(reader.readuntil(b"\r\n0\r\n\r\n"), timeout=20)
            health = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), timeout=20)
            writer.close()
            return health, server.seen.prompts

    health, prompts = asyncio.run(main())
    assert prompts == ["one", "two"]
    assert health.startswith(b"HTTP/1.1 200")


def test_a_request_without_messages_is_refused() -> None:
    [answer] = said(Script(), request("/v1/chat/completions", {"prompt": "hi"}), until=b"no messages in the request")
    assert answer.startswith(b"HTTP/1.1 400 ")


def page(script: Script, path: str = "/metrics", rows: int = 0) -> bytes:
    """Return a page of a server that has given some answers."""

    async def main() -> bytes:
        async with MockServer(script) as server:
            for _ in range(rows):
                port = int(server.url.split(":")[2].split("/")[0])
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(completion())
                await asyncio.wait_for(reader.readuntil(b"\r\n0\r\n\r\n"), timeout=20)
                writer.close()
            return server.page(path)

    return asyncio.run(main())


def samples(answer: bytes) -> dict[tuple[str, str], float]:
    text = answer.partition(b"\r\n\r\n")[2].decode()
    return {
        (sample.name, sample.labels["engine"] + sample.labels.get("position", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_f5c_counters_are_those_of_what_was_sent_unless_they_lie() -> None:
    plain = Script(tokens_per_event=(1, 3, 2), k=3)
    lying = plain.model_copy(update={"counter_factors": {"accepted_tokens": 1.2}})
    honest, lie = samples(page(plain, rows=2)), samples(page(lying, rows=2))
    name = ("vllm:spec_decode_num_accepted_tokens_total", "0")
    assert honest[name] == 6
    assert lie[name] == pytest.approx(7.2)
    assert {key for key in honest if honest[key] != lie[key]} == {name}
    assert honest["vllm:spec_decode_num_accepted_tokens_per_pos_total", "01"] == 2


def test_counters_may_begin_again_or_vanish() -> None:
    assert samples(page(Script(counters_reset_s=0), rows=1))["vllm:generation_tokens_total", "0"] == 0
    assert page(Script(counters_vanish_s=0), rows=1).startswith(b"HTTP/1.1 404 ")
    assert page(Script(counters_vanish_s=3600), rows=1).startswith(b"HTTP/1.1 200 ")


def test_each_engine_has_its_labels() -> None:
    shown = samples(page(Script(engines=2, answer_tokens=(5, 5)), rows=3))
    assert [shown["vllm:generation_tokens_total", engine] for engine in "01"] == [10, 5]


def test_g1_gauges_may_be_missing_or_lie() -> None:
    assert ("vllm:num_requests_running", "0") not in samples(page(Script(gauges=False)))
    assert samples(page(Script(running_shown=64)))["vllm:num_requests_running", "0"] == 64


@pytest.mark.parametrize(
    ("dialect", "name"),
    [("sglang", "sglang:generation_tokens_total"), ("llama.cpp", "llamacpp:tokens_predicted_total")],
)
def test_g11_counters_have_another_servers_names(dialect: str, name: str) -> None:
    shown = samples(page(Script.model_validate({"dialect": dialect}), rows=1))
    assert shown[name, "0"] == 3
    assert not [key for key in shown if key[0].startswith("vllm:")]


def test_what_was_really_sent_has_a_page() -> None:
    sent = json.loads(page(Script(tokens_per_event=(1, 3, 2)), "/mock/sent", rows=2).partition(b"\r\n\r\n")[2])
    assert (sent["steps"], sent["events"], sent["tokens"]) == (6, 6, 12)
    none = json.loads(page(Script(), "/mock/sent?to_s=0", rows=1).partition(b"\r\n\r\n")[2])
    assert none["events"] == 0
