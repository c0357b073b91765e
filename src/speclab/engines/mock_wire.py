"""One connection to the mock: plain HTTP/1.1 on an asyncio protocol, one request after the other."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import struct
from typing import TYPE_CHECKING, Any

from speclab.engines import mock_chunks
from speclab.engines.mock_chunks import Usage
from speclab.engines.mock_rows import Row

if TYPE_CHECKING:
    from speclab.engines.mock import MockServer

COMPLETIONS = "/v1/chat/completions"
CUT_S = 0.001
"""How long the second part of a chunk that is cut waits, s."""

_LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
_KEY = re.compile(rb"\r\nauthorization:\s*bearer\s+(\S+)", re.IGNORECASE)


class Connection(asyncio.Protocol):
    """Reads requests, and writes what they are answered.

    Parameters
    ----------
    server : MockServer
        Whose connection it is.
    """

    def __init__(self, server: MockServer):
        self._server = server
        self._script = server.script
        self._transport: asyncio.Transport | None = None
        self._unread = bytearray()
        self._row: Row | None = None
        self._usage: Usage = "none"
        self._streams = True
        self._reason_given = ""
        self._pending = 0
        """Tokens of steps that wait for the chunk that they are merged into."""
        self._cut: bytes = b""
        """The rest of a chunk that was cut."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the answer that was being written."""
        self._transport = None
        self._server.connections.discard(self)
        if self._row is not None:
            self._server.batch.drop(self._row)
            self._server.seen.in_flight -= 1
            self._server.seen.aborted += 1
            self._row = None

    def data_received(self, data: bytes) -> None:
        """Take in a part of a request."""
        self._unread += data
        self._read()

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def _read(self) -> None:
        """Answer the requests that are here whole, one at a time."""
        while self._row is None and self._transport is not None:
            end = self._unread.find(b"\r\n\r\n") + 4
            if end < 4:
                return
            length = _LENGTH.search(self._unread, 0, end)
            whole = end + (int(length[1]) if length else 0)
            if len(self._unread) < whole:
                return
            head, body = bytes(self._unread[:end]), bytes(self._unread[end:whole])
            del self._unread[:whole]
            method, target, _ = head.split(b" ", 2)
            if method == b"POST" and target.decode("latin-1") == COMPLETIONS:
                self._complete(head, body)
            else:
                self._write(self._server.page(target.decode("latin-1")))

    def _complete(self, head: bytes, body: bytes) -> None:
        script = self._script
        try:
            asked = json.loads(body)
            text = str(asked["messages"][-1]["content"])
        except (ValueError, LookupError, TypeError):
            self._write(mock_chunks.response(400, *mock_chunks.error(script, 400, "no messages in the request")))
            return
        number = self._server.take(asked)
        if script.status != 200 and script.hits(number):
            headers = () if script.retry_after_s is None else (f"Retry-After: {script.retry_after_s}",)
            kind, content = mock_chunks.error(script, script.status, self._reason(head))
            self._write(mock_chunks.response(script.status, kind, content, *headers))
            return
        self._streams = bool(asked.get("stream"))
        self._usage = self._usage_of(asked)
        is_hit = script.breaks_streams and script.hits(number)
        row = self._row = Row(script, text, asked, number, self._step_and_fail if is_hit else self._step)
        self._reason_given, self._pending = self._reason(head), 0
        seen = self._server.seen
        seen.in_flight += 1
        seen.most_in_flight = max(seen.most_in_flight, seen.in_flight)
        if self._streams:
            self._write(mock_chunks.STREAM_HEAD + self._server.chunks.opening(self._usage))
        self._server.batch.add(row)
        if is_hit:
            self._fail(row)

    def _usage_of(self, asked: dict[str, Any]) -> Usage:
        options = asked.get("stream_options") or {}
        if self._script.usage == "none" or not options.get("include_usage"):
            return "none"
        return "running" if self._script.usage == "running" and options.get("continuous_usage_stats") else "final"

    def _reason(self, head: bytes) -> str:
        key = _KEY.search(head)
        return self._script.reason.replace("{key}", key[1].decode("latin-1") if key else "none")

    def _step(self, row: Row) -> None:
        """Write what the last step gave."""
        tokens, reason = row.tokens, None if row.left else row.finish_reason
        if self._script.steps_per_chunk > 1:
            self._pending += tokens
            if row.left and row.events % self._script.steps_per_chunk:
                return
            tokens, self._pending = self._pending, 0
        chunks = self._server.chunks
        if self._streams:
            self._write(chunks.event(tokens, row.sent, reason, self._usage))
        if reason is not None:
            self._write(chunks.ending(row.sent, self._usage) if self._streams else chunks.whole(row.sent, reason))
            self._end()

    def _step_and_fail(self, row: Row) -> None:
        self._step(row)
        if row.left:
            self._fail(row)

    def _fail(self, row: Row) -> None:
        """Do what the script has go wrong after so many events."""
        script, transport = self._script, self._transport
        if transport is None:
            return
        if row.events == script.garbage_after:
            self._write(mock_chunks.framed(b"data: {not json\n\n"))
        if row.events == script.hang_after:
            self._server.batch.hang(row)
        if row.events == script.error_after:
            self._server.batch.drop(row)
            self._write(self._server.chunks.error(self._reason_given))
            self._end()
        elif row.events == script.close_after:
            self._server.batch.drop(row)
            self._end()
            transport.close()
        elif row.events == script.reset_after:
            self._server.batch.drop(row)
            self._end()
            _reset(transport)

    def _end(self) -> None:
        """Be done with an answer; requests that came meanwhile are read next."""
        self._row = None
        self._server.seen.in_flight -= 1
        if self._unread:
            asyncio.get_running_loop().call_soon(self._read)

    def _write(self, data: bytes) -> None:
        if self._transport is None:
            return
        if not self._script.cut_writes:
            self._transport.write(data)
            return
        middle = len(data) // 2
        middle = next((at for at in range(middle, middle + 4) if _is_inside_character(data, at)), middle)
        self._transport.write(self._cut + data[:middle])
        self._cut = data[middle:]
        asyncio.get_running_loop().call_later(CUT_S, self._write_rest)

    def _write_rest(self) -> None:
        if self._transport is not None and self._cut:
            self._transport.write(self._cut)
        self._cut = b""


def _is_inside_character(data: bytes, at: int) -> bool:
    return at < len(data) and data[at] & 0xC0 == 0x80


def _reset(transport: asyncio.Transport) -> None:
    """Close a connection so that its other end reads a reset, not an end."""
    connection = transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
