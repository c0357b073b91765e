"""Responses as they come off the wire, and a server that answers with given bytes."""

from __future__ import annotations

import asyncio
import ssl
from array import array
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from speclab.engines.transport import Arrivals

EVENT_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


def chunked(*parts: bytes) -> bytes:
    """Return parts of a body as the chunks of one."""
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts if part)


def response(*parts: bytes) -> bytes:
    """Return a whole response whose body comes in these chunks."""
    return EVENT_STREAM + chunked(*parts) + LAST_CHUNK


def sized(status: str, content: bytes, *headers: str) -> bytes:
    """Return a response that says how long it is."""
    lines = (f"HTTP/1.1 {status}", f"Content-Length: {len(content)}", *headers, "", "")
    return "\r\n".join(lines).encode() + content


def arrived(*pieces: bytes, at_s: Sequence[float] | None = None) -> Arrivals:
    """Return what came in these pieces, each a second after the one before where no times are given."""
    arrivals = Arrivals(array("d", range(1, len(pieces) + 1) if at_s is None else at_s), list(pieces))
    for piece in pieces:
        arrivals.framing.look(piece)
    return arrivals


Answers = Callable[[int, bytes], Sequence[bytes | None]]
"""From a request's number and its head and body to what is sent: pieces one after the other; None waits for ever."""


@asynccontextmanager
async def raw_server(
    answers: Answers, *, closes: bool = False, tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """Serve given bytes; yield the server's address.

    With `closes` a connection ends after its answer, with a reset where pieces end with an empty one.
    """
    count = 0
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lengths = [line[15:] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                body = await reader.readexactly(int(lengths[0])) if lengths else b""
                number, count = count, count + 1
                for piece in answers(number, head + body):
                    if piece is None:
                        await asyncio.Event().wait()
                    elif piece == b"":
                        writer.transport.abort()
                    else:
                        writer.write(piece)
                        await writer.drain()
                        for _ in range(3):  # a client in the same loop reads each piece before the next is sent
                            await asyncio.sleep(0)
                if closes:
                    break
        tasks.discard(task)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
