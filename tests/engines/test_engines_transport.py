"""Connections of the load: kept, replaced, lost; over real sockets, against a server that sends given bytes."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from arrived import EVENT_STREAM, Answers, chunked, raw_server, response, sized

from speclab.engines.transport import Arrivals, Lost, NoConnection, Transport

Result = TypeVar("Result")
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def over(answers: Answers, ask: Callable[[Transport], Awaitable[Result]], *, closes: bool = False) -> Result:
    async def main() -> Result:
        async with raw_server(answers, closes=closes) as url:
            transport = Transport(url)
            try:
                async with asyncio.timeout(30):
                    return await ask(transport)
            finally:
                await transport.close()

    return asyncio.run(main())


async def got(transport: Transport) -> Arrivals:
    arrivals = Arrivals()
    await transport.exchange(REQUEST, arrivals)
    return arrivals


def content(arrivals: Arrivals) -> bytes:
    return arrivals.body().content


def test_what_comes_is_kept_with_the_time_of_its_arrival() -> None:
    async def ask(transport: Transport) -> tuple[float, Arrivals, float]:
        loop = asyncio.get_running_loop()
        return loop.time(), await got(transport), loop.time()

    before_s, arrivals, after_s = over(lambda *_: [response(b"data: a\n\n", b"data: b\n\n")], ask)
    assert content(arrivals) == b"data: a\n\ndata: b\n\n"
    assert len(arrivals.at_s) == len(arrivals.pieces)
    assert before_s <= arrivals.at_s[0] <= arrivals.at_s[-1] <= after_s


def test_a_connection_is_used_again() -> None:
    async def ask(transport: Transport) -> list[bytes]:
        return [content(await got(transport)) for _ in range(3)]

    # each connection counts its own requests: of one that is used again the third answer is the third
    assert over(lambda number, _: [response(b"data: %d\n\n" % number)], ask) == [
        b"data: 0\n\n",
        b"data: 1\n\n",
        b"data: 2\n\n",
    ]


def test_there_is_no_limit_to_the_connections() -> None:
    async def ask(transport: Transport) -> int:
        under_way = [asyncio.create_task(got(transport)) for _ in range(200)]
        await asyncio.gather(*under_way)
        return len(under_way)

    seen: list[int] = []
    assert over(lambda number, _: seen.append(number) or [sized("200 OK", b"x")], ask) == 200
    assert sorted(seen) == list(range(200))


def test_a_kept_connection_that_the_server_has_closed_is_replaced() -> None:
    async def ask(transport: Transport) -> list[bytes]:
        return [content(await got(transport)) for _ in range(3)]

    assert over(lambda number, _: [response(b"data: %d\n\n" % number)], ask, closes=True)[2] == b"data: 2\n\n"


def test_a_body_without_a_length_ends_with_its_connection() -> None:
    pieces = [b"HTTP/1.1 200 OK\r\n\r\ndata: a\n\n", b"data: b\n\n"]
    arrivals = over(lambda *_: pieces, got, closes=True)
    assert content(arrivals) == b"data: a\n\ndata: b\n\n"
    assert arrivals.framing.has_ended


@pytest.mark.parametrize("tail", [b"", b"0\r\n"])
def test_a_stream_that_ends_in_the_middle_is_lost_and_kept(tail: bytes) -> None:
    kept: list[Arrivals] = []

    async def ask(transport: Transport) -> None:
        kept.append(Arrivals())
        await transport.exchange(REQUEST, kept[0])

    pieces = [EVENT_STREAM + chunked(b"data: a\n\n") + tail]
    with pytest.raises(Lost, match="closed"):
        over(lambda *_: pieces, ask, closes=True)
    assert content(kept[0]) == b"data: a\n\n"
    assert not kept[0].framing.has_ended


def test_a_reset_is_lost() -> None:
    with pytest.raises(Lost):
        over(lambda *_: [b""], got)


def test_what_is_no_http_is_lost_with_the_reason() -> None:
    with pytest.raises(Lost, match="cannot be read: it does not begin as an HTTP response"):
        over(lambda *_: [b"SSH-2.0-OpenSSH\r\n"], got)


def test_what_only_looks_like_the_end_is_found_out_when_it_is_read() -> None:
    """A chunk that holds the end of a stream, cut there by the network: taken for the end, and then named."""
    inside = b"data: a\n\n\r\n0\r\n\r\nmore"
    cut = len(EVENT_STREAM) + len(b"15\r\n") + len(inside) - len(b"more")

    async def ask(transport: Transport) -> bool:
        arrivals = Arrivals()
        await transport.exchange(REQUEST, arrivals)
        return arrivals.body().is_whole

    sent = EVENT_STREAM + chunked(inside)
    assert over(lambda *_: [EVENT_STREAM, sent[len(EVENT_STREAM) : cut], None], ask) is False


def test_a_port_without_a_server_gives_no_connection() -> None:
    async def main() -> None:
        async with raw_server(lambda *_: []) as url:
            pass
        await Transport(url).exchange(REQUEST, Arrivals())

    with pytest.raises(NoConnection):
        asyncio.run(main())


def test_cancelling_closes_the_connection_and_keeps_what_came() -> None:
    async def ask(transport: Transport) -> Arrivals:
        arrivals = Arrivals()
        task = asyncio.create_task(transport.exchange(REQUEST, arrivals))
        while not arrivals.pieces:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return arrivals

    arrivals = over(lambda *_: [EVENT_STREAM + chunked(b"data: a\n\n"), None], ask)
    assert content(arrivals) == b"data: a\n\n"


@pytest.fixture
def certified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """Return how a server serves under a certificate that this process trusts."""
    if shutil.which("openssl") is None:
        pytest.skip("makes its certificate with openssl")
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    command = ["openssl", *words.split(), "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def test_a_stream_over_tls_is_the_same(certified: ssl.SSLContext) -> None:
    parts = [b"data: %d\n\n" % number for number in range(40)]
    pieces = [EVENT_STREAM, *map(chunked, parts), b"0\r\n\r\n"]

    async def main() -> list[Arrivals]:
        async with asyncio.timeout(60), raw_server(lambda *_: pieces, tls=certified) as url:
            transport = Transport(url)
            try:
                return [await got(transport) for _ in range(2)]
            finally:
                await transport.close()

    assert [content(arrivals) for arrivals in asyncio.run(main())] == [b"".join(parts)] * 2


def test_a_certificate_that_is_not_trusted_gives_no_connection(
    certified: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")

    async def main() -> None:
        async with raw_server(lambda *_: [], tls=certified) as url:
            await got(Transport(url))

    with pytest.raises(NoConnection, match="certificate"):
        asyncio.run(main())
