"""The way of the load's requests: prepared bytes out, pieces and the times of their arrival in, nothing else.

On a client that is timed, work that is done between two arrivals is time that an event seems to have taken. So the one
thing that happens when bytes come is that they are kept with the time (`_Connection.buffer_updated`); what they say is
read after the cell. A general HTTP client spends several times as long on each event (`docs/decisions.md`). Connections
are kept and used again, without a limit of their number: a limit below the concurrency would silently cap it
(gpustack/gpustack#2324). Proxies are not used: one would gather events.
"""

from __future__ import annotations

import asyncio
import errno
import ssl
from array import array
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import urlsplit

from speclab.engines.http1 import Body, Framing, NotHttp, ResponseHead, body

CONNECT_WITHIN_S = 5.0
READ_BYTES = 64 * 1024
"""Read at once: many events, so that one piece holds all that had come."""

_END = b"\r\n\r\n"
"""How every response in chunks ends, and hardly ever an event of one."""
_STREAM_END = b"\n\n\r\n0\r\n\r\n"
"""How a stream of events ends: the last event, its chunk, and the chunk of no bytes. That nothing inside a chunk only
looked like it is checked when the answer is read; walking through all its chunks now would hold up the others."""


class NoConnection(Exception):  # noqa: N818 - a finding about a server, told in one line
    """The server takes no connection."""


class Lost(Exception):  # noqa: N818 - a finding about a server, told in one line
    """The connection ended, or what came over it was no response; what had come is kept."""


@dataclass(slots=True)
class Arrivals:
    """What came in answer to one request.

    Attributes
    ----------
    at_s : array of float
        Loop time at which each piece was read, s.
    pieces : list of bytes
        What came at once, head and framing included.
    framing : Framing
        Knows whether it has ended.
    """

    at_s: array[float] = field(default_factory=lambda: array("d"))
    pieces: list[bytes] = field(default_factory=list)
    framing: Framing = field(default_factory=Framing)

    @property
    def head(self) -> ResponseHead | None:
        """Status and headers; None where they have not come."""
        return self.framing.head

    def body(self) -> Body:
        """Return the body as far as it has come.

        Raises
        ------
        NotHttp
            It is not framed as one.
        """
        assert self.head is not None
        return body(self.head, self.pieces)


class Transport:
    """Connections to one server; an async context that ends with none of them open.

    Parameters
    ----------
    root : str
        Address of the server.
    """

    def __init__(self, root: str):
        parts = urlsplit(root)
        self._host = parts.hostname or ""
        self._port = parts.port or {"http": 80, "https": 443}[parts.scheme]
        self._ssl = ssl.create_default_context() if parts.scheme == "https" else None
        self._idle: list[_Connection] = []
        self._all: set[_Connection] = set()
        self._buffer = bytearray(READ_BYTES)

    async def exchange(self, request: bytes, arrivals: Arrivals) -> None:
        """Send a request, head and body, and keep what comes until the response has ended.

        A kept connection that the server had closed meanwhile, and that gave nothing, is replaced by a new one.
        Cancelling the call closes the connection, so that the server stops.

        Raises
        ------
        NoConnection
            The server takes no connection within `CONNECT_WITHIN_S`.
        Lost
            The connection ended before the response did.
        OSError
            This machine has no connection left to give.
        """
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                try:
                    await self._over(connection, request, arrivals)
                    return
                except Lost:
                    if arrivals.pieces:
                        raise
                    break
        await self._over(await self._connected(), request, arrivals)

    async def close(self) -> None:
        """Close every connection."""
        for connection in list(self._all):
            connection.abort()
        while self._all:
            await asyncio.sleep(0)  # each is told in the next round of the loop

    async def _over(self, connection: _Connection, request: bytes, arrivals: Arrivals) -> None:
        try:
            await connection.exchange(request, arrivals)
        except BaseException:
            connection.abort()
            raise
        if arrivals.head is not None and arrivals.head.keeps_alive:
            self._idle.append(connection)
        else:
            connection.abort()

    async def _connected(self) -> _Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_WITHIN_S):
                _, connection = await loop.create_connection(
                    lambda: _Connection(loop, self._buffer, self._all), self._host, self._port, ssl=self._ssl
                )
                return connection
        except OSError as error:  # a timeout is one
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL):
                raise
            raise NoConnection(str(error) or type(error).__name__) from None


class _Connection(asyncio.BufferedProtocol):
    def __init__(self, loop: asyncio.AbstractEventLoop, buffer: bytearray, open_ones: set[_Connection]):
        self._loop = loop
        self._time = loop.time
        # one buffer for all connections: a loop fills it for one of them at a time. As a view, since asyncio's TLS
        # reads into slices of it, and a slice of a bytearray is a copy
        self._view = memoryview(buffer)
        self._open_ones = open_ones
        self._transport: asyncio.Transport | None = None
        self._done: asyncio.Future[None] | None = None
        self._take_up(Arrivals())

    def _take_up(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._stamp, self._keep = arrivals.at_s.append, arrivals.pieces.append
        self._looked_at = 0
        self._looks = True

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def exchange(self, request: bytes, arrivals: Arrivals) -> None:
        assert self._transport is not None
        self._take_up(arrivals)
        self._done = self._loop.create_future()
        try:
            self._transport.write(request)
            await self._done
        finally:
            self._done = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._open_ones.add(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._view

    def buffer_updated(self, nbytes: int) -> None:
        self._stamp(self._time())
        data = self._view[:nbytes].tobytes()
        self._keep(data)
        # the end of a response in chunks may itself be cut; of any other kind each piece may be the last
        if nbytes < len(_END) or data.endswith(_END) or self._looks:
            self._look()

    def _look(self) -> None:
        if self._done is None or self._done.done():
            self.abort()  # nothing was asked
            return
        framing, pieces = self._arrivals.framing, self._arrivals.pieces
        if not self._looks and b"".join(pieces[-2:]).endswith(_STREAM_END):
            framing.has_ended = True
            self._done.set_result(None)
            return
        try:
            has_ended = framing.look(b"".join(pieces[self._looked_at :]))
        except NotHttp as broken:
            self._done.set_exception(Lost(f"the server's answer cannot be read: {broken}"))
            return
        self._looked_at = len(pieces)
        self._looks = framing.head is None or not framing.head.is_chunked
        if has_ended:
            self._done.set_result(None)

    def eof_received(self) -> None:
        pass  # and so the connection is closed

    def connection_lost(self, error: Exception | None) -> None:
        self._open_ones.discard(self)
        if self._done is None or self._done.done():
            return
        head = self._arrivals.head
        if error is None and head is not None and not head.is_chunked and head.length is None:
            self._arrivals.framing.has_ended = True
            self._done.set_result(None)
        else:
            self._done.set_exception(Lost(type(error).__name__ if error is not None else "closed"))
