"""Framing of HTTP/1.1, held against h11 and against every way in which a network may cut it."""

from __future__ import annotations

import itertools

import h11
import pytest
from arrived import EVENT_STREAM, LAST_CHUNK, chunked, response, sized
from hypothesis import given
from hypothesis import strategies as st

from speclab.engines.http1 import Body, Framing, NotHttp, ResponseHead, body, head

PARTS = st.lists(st.binary(min_size=1, max_size=12) | st.sampled_from([b"0\r\n\r\n", b"\r\n\r\n", b"data: x\n\n"]))


def cut(data: bytes, places: list[int]) -> list[bytes]:
    borders = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(borders) if a < b]


def by_h11(pieces: list[bytes]) -> tuple[int, bytes, list[int], bool]:
    """Return status, body, how much of it had come with each piece, and whether it ended."""
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="GET", target="/", headers=[("host", "x")]))
    client.send(h11.EndOfMessage())
    status, content, ends, has_ended = 0, b"", [], False
    for piece in pieces:
        client.receive_data(piece)
        while (event := client.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
            if isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                content += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                has_ended = True
                break
        ends.append(len(content))
    return status, content, ends, has_ended


def ours(pieces: list[bytes]) -> tuple[ResponseHead, Body, list[bool]]:
    framing = Framing()
    ended = [framing.look(piece) for piece in pieces]
    assert framing.head is not None
    return framing.head, body(framing.head, pieces), ended


@given(PARTS, st.lists(st.integers(0, 10**6), max_size=12))
def test_a_body_in_chunks_is_what_h11_reads_however_it_is_cut(parts: list[bytes], places: list[int]) -> None:
    pieces = cut(response(*parts), places)
    status, content, ends, has_ended = by_h11(pieces)
    top, came, ended = ours(pieces)
    assert (top.status, came.content) == (status, content)
    # h11 waits for a chunk's size to come whole before it gives any of its content, as we do
    assert came.ends.tolist() == ends
    assert has_ended
    assert ended == [False] * (len(pieces) - 1) + [True]
    assert came.is_whole


@given(st.binary(max_size=40), st.lists(st.integers(0, 10**6), max_size=8))
def test_a_body_with_a_length_is_what_h11_reads_however_it_is_cut(content: bytes, places: list[int]) -> None:
    pieces = cut(sized("429 Too Many Requests", content), places)
    top, came, ended = ours(pieces)
    assert (top.status, came.content, came.ends.tolist()) == by_h11(pieces)[:3]
    assert ended[-1]
    assert came.is_whole


@given(PARTS, st.integers(0, 10**6))
def test_what_was_cut_off_gives_the_body_so_far(parts: list[bytes], place: int) -> None:
    data = response(*parts)
    sent = data[: len(EVENT_STREAM) + place % (len(data) - len(EVENT_STREAM))]
    _, came, ended = ours([sent])
    assert b"".join(parts).startswith(came.content)
    assert not ended[-1]
    assert not came.is_whole


def test_trailers_and_extensions_of_chunks_are_passed_over() -> None:
    pieces = [EVENT_STREAM + b"3;name=value\r\nabc\r\n0\r\nX-Sum: 1\r\n", b"\r\n"]
    _, came, ended = ours(pieces)
    assert (came.content, ended) == (b"abc", [False, True])


def test_interim_responses_are_passed_over() -> None:
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    top = head(early + sized("200 OK", b"abc"))
    assert top is not None
    assert (top.status, top.length) == (200, 3)
    assert head(early) is None


@pytest.mark.parametrize(
    ("sent", "keeps"),
    [
        (response(b"x"), True),
        (sized("200 OK", b"x"), True),
        (sized("200 OK", b"x", "Connection: close"), False),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil it closes", False),
        (sized("200 OK", b"x").replace(b"1.1", b"1.0"), False),
    ],
)
def test_which_connections_carry_another_request(sent: bytes, keeps: bool) -> None:
    top = head(sent)
    assert top is not None
    assert top.keeps_alive is keeps


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", "does not begin as an HTTP response"),
        (b"HTTP/2 200\r\n\r\n", "does not begin as an HTTP response"),
        (b"HTTP/1.1 2x0 OK\r\n\r\n", "does not begin as an HTTP response"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", "its length is no number"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000, "does not begin as an HTTP response"),
        (EVENT_STREAM + b"zz\r\nabc", "a chunk does not begin with its size"),
        (EVENT_STREAM + b"-3\r\nabc", "a chunk does not begin with its size"),
        (EVENT_STREAM + b"x" * 5000, "a chunk does not begin with its size"),
        (EVENT_STREAM + b"2\r\nabcd\r\n", "a chunk is longer than it says"),
        (response(b"abc") + b"HTTP", "4 bytes follow the response"),
        (sized("200 OK", b"abc") + b"d", "1 bytes follow the response"),
    ],
)
def test_what_is_no_response_is_named(sent: bytes, said: str) -> None:
    with pytest.raises(NotHttp, match=said):
        Framing().look(sent)


@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_are_a_response_or_none(sent: bytes, is_body: bool) -> None:
    framing = Framing()
    try:
        framing.look(EVENT_STREAM + sent if is_body else sent)
    except NotHttp:
        return
    if framing.head is not None:
        assert len(body(framing.head, [EVENT_STREAM + sent]).content) <= len(sent)


def test_each_byte_is_known_by_the_piece_that_brought_it() -> None:
    data = chunked(b"abcd", b"ef")
    pieces = [EVENT_STREAM, data[:5], data[5:12], data[12:] + LAST_CHUNK]
    _, came, _ = ours(pieces)
    assert came.ends.tolist() == [0, 2, 4, 6]
    assert came.piece_of([1, 2, 3, 4, 6]).tolist() == [1, 1, 2, 2, 3]
