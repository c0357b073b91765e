"""An event loop in virtual time whose servers and clients are in one process, on wires that take no time.

Server and client are the real ones: they ask the loop for a port and for a connection, and get each other. So minutes
of serving at hundreds of requests in flight are tested in seconds, and every time is exact.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
from collections.abc import Callable
from typing import Any

from speclab.engines.virtual_time import VirtualTimeLoop

Factory = Callable[[], asyncio.BaseProtocol]


class _NoSocket:
    """What HTTP libraries ask of a socket."""

    family = socket.AF_INET
    silent, _ = os.pipe()

    def fileno(self) -> int:
        return self.silent

    def getpeername(self) -> tuple[str, int]:
        return "127.0.0.1", 1

    getsockname = getpeername

    def setsockopt(self, *_: object) -> None: ...


class _Wire(asyncio.Transport):
    """One end of a connection; what is written arrives at the other in the loop's next round."""

    def __init__(self, loop: asyncio.AbstractEventLoop, protocol: asyncio.BaseProtocol) -> None:
        super().__init__({"socket": _NoSocket()})
        self._loop, self._protocol = loop, protocol
        self._is_closing = False
        self.other: _Wire

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._is_closing:
            self._loop.call_soon(self.other._arrive, bytes(data))

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        for end in (self, self.other):
            if not end._is_closing:
                end._is_closing = True
                self._loop.call_soon(end._protocol.connection_lost, None)

    abort = close

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def _arrive(self, data: bytes) -> None:
        if self._is_closing:
            return
        if not isinstance(self._protocol, asyncio.BufferedProtocol):
            self._protocol.data_received(data)  # type: ignore[attr-defined]
            return
        while data:
            buffer = memoryview(self._protocol.get_buffer(-1))
            taken = min(len(buffer), len(data))
            buffer[:taken] = data[:taken]
            self._protocol.buffer_updated(taken)
            data = data[taken:]


class _Listener:
    """What a server asks of the sockets that it listens on."""

    def __init__(self, port: int) -> None:
        self.sockets = [self]
        self._port = port

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", self._port

    def close(self) -> None: ...


class WiredTimeLoop(VirtualTimeLoop):
    """A loop in virtual time that connects its own servers and clients."""

    def __init__(self) -> None:
        super().__init__()
        self._servers: dict[int, Factory] = {}
        self._ports = itertools.count(1)

    async def create_server(self, factory: Factory, *_: Any, **__: Any) -> Any:
        port = next(self._ports)
        self._servers[port] = factory
        return _Listener(port)

    async def create_connection(self, factory: Factory, _host: Any = None, port: Any = None, **__: Any) -> Any:
        here, there = _Wire(self, factory()), _Wire(self, self._servers[int(port)]())
        here.other, there.other = there, here
        there._protocol.connection_made(there)
        here._protocol.connection_made(here)
        return here, here._protocol
