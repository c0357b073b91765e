"""A server that speaks the OpenAI dialect, serves no model, and misbehaves as told.

For the tests of everything that talks to a server, and as the null server that shows how much this client can carry. It
keeps vLLM's counters, so that what a client concludes can be compared with what was really sent.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, Self

_CHUNK = {"id": "mock", "object": "chat.completion.chunk", "created": 0}
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Script:
    """How the server behaves towards every request.

    Attributes
    ----------
    model : str
        The model it says it serves.
    tokens_per_event : tuple of int
        One chunk for each entry, holding so many tokens.
    event_gap_s : float
        Pause before each chunk, s.
    k : int or None
        Draft tokens a step; an event of n tokens then counts as a draft of which n - 1 were accepted. None: no
        speculation, and so no speculative counters.
    usage : {'running', 'final', 'none'}
        Which usage it sends: with each chunk and at the end, only at the end, or not at all.
    metrics : bool
        Whether ``/metrics`` exists.
    status : int
        What it answers to a completion; anything but 200 carries an error body.
    listed : bool
        Whether ``/v1/models`` exists.
    models : str, optional
        What ``/v1/models`` answers in place of a list with `model`.
    close_after : int, optional
        Close the connection after so many chunks.
    hang_after : int, optional
        Send nothing more after so many chunks, and keep the connection.
    garbage_after : int, optional
        Send a line that is no JSON after so many chunks.
    fault_from : int
        The first request (from 0) that `status`, `close_after`, `hang_after` and `garbage_after` apply to.
    """

    model: str = "mock"
    tokens_per_event: tuple[int, ...] = (1, 1, 1)
    event_gap_s: float = 0.0
    k: int | None = None
    usage: Literal["running", "final", "none"] = "running"
    metrics: bool = True
    status: int = 200
    listed: bool = True
    models: str | None = None
    close_after: int | None = None
    hang_after: int | None = None
    garbage_after: int | None = None
    fault_from: int = 0


@dataclass(slots=True)
class Seen:
    """What the server saw.

    Attributes
    ----------
    prompts : list of str
        In order of arrival.
    bodies : list of dict
        The requests whole.
    in_flight, most_in_flight : int
        Completions being answered, now and at most.
    aborted : int
        Completions whose client went away.
    """

    prompts: list[str] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    aborted: int = 0


class MockServer:
    """The server, listening on a port of this machine while its context is open.

    Parameters
    ----------
    script : Script
        How it behaves.
    port : int
        Where it listens; 0 for any free port.
    """

    def __init__(self, script: Script | None = None, port: int = 0):
        self._port = port
        self.script = script or Script()
        self.seen = Seen()
        self._counted: Counter[str] = Counter()
        self._accepted_at: Counter[int] = Counter()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Close the port and every connection: what a client sees of a server that dies."""
        if self._server is not None:
            self._server.close()
            for connection in self._connections:
                connection.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    @property
    def url(self) -> str:
        """Address of the API."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while await self._answer_one(reader, writer):
                    pass
        finally:
            self._connections.discard(task)
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection stays open for the next."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        method, path, _ = head.split(" ", 2)
        lengths = [line.split(":")[1] for line in head.lower().split("\r\n") if line.startswith("content-length:")]
        body = await reader.readexactly(int(lengths[0])) if lengths else b""
        if method == "POST" and path == "/v1/chat/completions":
            return await self._complete(json.loads(body), reader.at_eof, writer)
        status, kind, content = self._page(path)
        writer.write(_response(status, kind, content))
        await writer.drain()
        return True

    def _page(self, path: str) -> tuple[int, str, str]:
        if path == "/v1/models" and self.script.listed:
            listed = {"data": [{"id": self.script.model, "owned_by": "mock"}]}
            return 200, JSON, self.script.models or json.dumps(listed)
        if path == "/metrics" and self.script.metrics:
            return 200, "text/plain", self._metrics()
        return 404, JSON, _error("not found")

    async def _complete(self, body: dict[str, Any], has_left: Callable[[], bool], writer: asyncio.StreamWriter) -> bool:
        number = len(self.seen.prompts)
        self.seen.bodies.append(body)
        self.seen.prompts.append(body["messages"][-1]["content"])
        if self.script.status != 200 and number >= self.script.fault_from:
            writer.write(_response(self.script.status, JSON, _error("told to refuse")))
            await writer.drain()
            return True
        self.seen.in_flight += 1
        self.seen.most_in_flight = max(self.seen.most_in_flight, self.seen.in_flight)
        ended = False
        try:
            writer.write(_head(200, "text/event-stream", "Transfer-Encoding: chunked"))
            async for line in self._lines(body, has_left, faulty=number >= self.script.fault_from):
                writer.write(_chunked(line))
                await writer.drain()
            ended = True
        except _CloseNow:
            return False
        finally:
            self.seen.in_flight -= 1
            self.seen.aborted += not ended
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    async def _lines(self, body: dict[str, Any], has_left: Callable[[], bool], *, faulty: bool) -> AsyncIterator[bytes]:
        """Yield one answer, line by line; `has_left` says whether the client has closed the connection."""
        script, sent = self.script, 0
        yield self._chunk({"role": "assistant", "content": ""}, None, sent)
        for index, tokens in enumerate(script.tokens_per_event):
            if faulty and index == script.close_after:
                raise _CloseNow
            if faulty and index == script.hang_after:
                await asyncio.Event().wait()
            if faulty and index == script.garbage_after:
                yield b"data: {not json\n\n"
            await asyncio.sleep(script.event_gap_s)
            sent += tokens
            self._counted["iteration_tokens_total_count"] += 1
            self._count(tokens)
            last = index == len(script.tokens_per_event) - 1
            yield self._chunk({"content": "x" * tokens}, "stop" if last else None, sent)
        for line in self._ending(sent):
            yield line

    def _ending(self, sent: int) -> list[bytes]:
        done = [b"data: [DONE]\n\n"]
        if self.script.usage == "none":
            return done
        return [_data({**_CHUNK, "model": self.script.model, "choices": [], "usage": _usage(sent)}), *done]

    def _chunk(self, delta: dict[str, str], finish_reason: str | None, sent: int) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        chunk = {**_CHUNK, "model": self.script.model, "choices": [choice]}
        if self.script.usage == "running":
            chunk["usage"] = _usage(sent)
        return _data(chunk)

    def _count(self, tokens: int, *, drafted: bool = True) -> None:
        self._counted["generation_tokens_total"] += tokens
        if self.script.k is not None and drafted:
            self._counted["spec_decode_num_drafts_total"] += 1
            self._counted["spec_decode_num_draft_tokens_total"] += self.script.k
            self._counted["spec_decode_num_accepted_tokens_total"] += tokens - 1
            self._accepted_at.update(range(tokens - 1))

    def _metrics(self) -> str:
        labels = f'engine="0",model_name="{self.script.model}"'
        names = ["generation_tokens_total", "iteration_tokens_total_count"]
        lines = [f"vllm:num_requests_running{{{labels}}} {float(self.seen.in_flight)}"]
        if self.script.k is not None:
            names += [f"spec_decode_num_{what}_total" for what in ("drafts", "draft_tokens", "accepted_tokens")]
            name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
            lines += [
                f'{name}{{{labels},position="{position}"}} {float(self._accepted_at[position])}'
                for position in range(self.script.k)
            ]
        lines += [f"vllm:{name}{{{labels}}} {float(self._counted[name])}" for name in names]
        return "\n".join(lines) + "\n"


class _CloseNow(Exception):  # noqa: N818 - control flow of a scripted fault
    pass


def _usage(tokens: int) -> dict[str, int]:
    return {"prompt_tokens": 7, "completion_tokens": tokens, "total_tokens": 7 + tokens}


def _error(text: str) -> str:
    return json.dumps({"error": {"message": text, "type": "mock"}})


def _data(chunk: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def _chunked(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _head(status: int, kind: str, *more: str) -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status} Mock", f"Content-Type: {kind}", *more, "", "")).encode()


def _response(status: int, kind: str, content: str) -> bytes:
    data = content.encode()
    return _head(status, kind, f"Content-Length: {len(data)}") + data
