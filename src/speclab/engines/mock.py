"""A server that speaks the OpenAI dialect, serves no model, and does what its script says.

For the tests of everything that talks to a server, for those who want to try the harness without one
(``speclab mock``), and as the stub that shows what this client carries. ``/mock/sent`` says what it really sent, and
how well it kept its own schedule.
"""

from __future__ import annotations

import asyncio
import gc
import select
import selectors
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from speclab.engines import mock_pages
from speclab.engines.mock_batch import RunningBatch
from speclab.engines.mock_chunks import JSON, Chunks, error, response
from speclab.engines.mock_script import Script
from speclab.engines.mock_wire import Connection

__all__ = ["MockServer", "Script", "Seen", "precise_loop", "serve"]

BODIES_KEPT = 10_000


@dataclass(slots=True)
class Seen:
    """What the server saw.

    Attributes
    ----------
    requests : int
        Completions asked for.
    bodies : list of dict
        The requests whole, in order of arrival; the first `BODIES_KEPT`.
    in_flight, most_in_flight : int
        Completions being answered, now and at most.
    aborted : int
        Completions whose connection was lost before their end.
    """

    requests: int = 0
    bodies: list[dict[str, Any]] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    aborted: int = 0

    @property
    def prompts(self) -> list[str]:
        """The prompts of the requests that are kept."""
        return [body["messages"][-1]["content"] for body in self.bodies]


class MockServer:
    """The server, listening while its context is open.

    Parameters
    ----------
    script : Script
        How it behaves.
    port : int
        Where it listens; 0 for any free port.
    host : str
        The address that it listens on; this machine's own by default.
    """

    def __init__(self, script: Script | None = None, port: int = 0, host: str = "127.0.0.1"):
        self.script = script or Script()
        self.seen = Seen()
        self.batch = RunningBatch(self.script)
        self.chunks = Chunks(self.script)
        self.connections: set[Connection] = set()
        self._address = (host, port)
        self._server: asyncio.Server | None = None
        self._at_reset: list[dict[str, float]] = []

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Connection(self), *self._address, backlog=2048)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Close the port and every connection: what a client sees of a server that dies."""
        self.batch.stop()
        if self._server is not None:
            self._server.close()
        for connection in self.connections:
            connection.abort()
        while self.connections:
            await asyncio.sleep(0)

    @property
    def url(self) -> str:
        """Address of the API."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/v1"

    def take(self, asked: dict[str, Any]) -> int:
        """Note a request; return its number."""
        seen = self.seen
        if len(seen.bodies) < BODIES_KEPT:
            seen.bodies.append(asked)
        seen.requests += 1
        return seen.requests - 1

    def page(self, target: str) -> bytes:
        """Return what a request for a page is answered."""
        url = urlsplit(target)
        pages: dict[str, Callable[[], tuple[str, str] | None]] = {
            "/health": lambda: ("text/plain", ""),
            "/version": self._version,
            "/v1/models": lambda: (JSON, mock_pages.models(self.script)) if self.script.listed else None,
            "/metrics": self._metrics,
            "/mock/sent": lambda: (JSON, self._sent(url.query)),
        }
        page = pages[url.path]() if url.path in pages else None
        return response(404, *error(self.script, 404, "not found")) if page is None else response(200, *page)

    def _version(self) -> tuple[str, str] | None:
        version = self.script.version
        return None if version is None else (JSON, f'{{"version": "{version}"}}')

    def _sent(self, query: str) -> str:
        between = {name: float(value[0]) for name, value in parse_qs(query).items() if name in ("from_s", "to_s")}
        return self.batch.sent(**between).model_dump_json()

    def _metrics(self) -> tuple[str, str] | None:
        script, since_s = self.script, 0.0
        if self.batch.first_s is not None:
            since_s = asyncio.get_running_loop().time() - self.batch.first_s
        if not script.metrics or (script.counters_vanish_s is not None and since_s >= script.counters_vanish_s):
            return None
        if script.counters_reset_s is not None and since_s >= script.counters_reset_s and not self._at_reset:
            self._at_reset = mock_pages.counted(script, self.batch)
        return "text/plain", mock_pages.metrics(script, self.batch, self._at_reset)


async def serve(server: MockServer, until: Awaitable[object] | None = None) -> None:
    """Serve, and print the address; until something has happened, or for ever."""
    async with server:
        print(f"a mock, no model: serving at {server.url}", flush=True)
        gc.collect()
        gc.freeze()  # a collection over the imports' objects would be a late step
        await (until or asyncio.Event().wait())


def precise_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop for a process of the server's own; its timers are not rounded up to milliseconds."""
    if not hasattr(selectors, "EpollSelector"):
        return asyncio.new_event_loop()
    return asyncio.SelectorEventLoop(_PreciseSelector())


if hasattr(selectors, "EpollSelector"):

    class _PreciseSelector(selectors.EpollSelector):
        """epoll takes whole milliseconds, and Python rounds up; select on epoll's own descriptor takes microseconds."""

        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            if timeout is not None and timeout > 0:
                select.select([self.fileno()], [], [], timeout)
                timeout = 0
            return super().select(timeout)


if __name__ == "__main__":  # the script is the first line of the input, whose end is the server's
    with asyncio.Runner(loop_factory=precise_loop) as runner:
        given = Script.model_validate_json(sys.stdin.readline())
        runner.run(serve(MockServer(given), asyncio.to_thread(sys.stdin.read)))
