"""Framing of server-sent events, held against the openai client's own decoder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai._streaming import SSEDecoder

from speclab.engines.sse import Event, events


def said(body: bytes) -> list[tuple[str, str]]:
    return [(event.name, event.data) for event in events(body)]


@pytest.mark.parametrize(
    ("body", "held"),
    [
        (b"data: a\n\ndata: b\n\n", ["a", "b"]),
        (b"data:a\n\n", ["a"]),
        (b"data:  a\n\n", [" a"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]),
        (b"data: a\r\rdata: b\n\r\n", ["a", "b"]),
        (b": ping\n\n: ping - 2026\n\ndata: a\n\n", ["a"]),
        (b": ping\ndata: a\n\n", ["a"]),
        (b"data: a\ndata: b\n\n", ["a\nb"]),
        (b"id: 1\nretry: 3\ndata: a\n\n", ["a"]),
        (b"\n\n\ndata: a\n\n\n\ndata: b\n\n", ["a", "b"]),
        (b"data\n\n", [""]),
        (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
        (b"data: a\n\ndata: b", ["a", "b"]),
        (b"data: \xff\n\n", ["\ufffd"]),
        ("data: \u00e9\u2028x\n\n".encode(), ["\u00e9\u2028x"]),
        (b"{}\n\nnothing", []),
    ],
)
def test_what_is_an_event(body: bytes, held: list[str]) -> None:
    assert [event.data for event in events(body)] == held


def test_an_event_ends_behind_its_blank_line() -> None:
    body = b"event: error\ndata: a\n\n: ping\r\n\r\ndata: b\r\n\r\n"
    assert list(events(body)) == [Event("a", "error", 22), Event("b", "", len(body))]


LINES = st.sampled_from(
    ["data: x", "data:y", 'data: {"a": 1}', "event: error", "id: 7", ": ping", "retry: 5", "\u00e9: z"]
)
BLOCKS = st.lists(st.lists(LINES, min_size=1, max_size=4), max_size=5)


@given(BLOCKS, st.sampled_from(["\n", "\r\n", "\r"]))
def test_events_are_those_of_the_openai_client(blocks: list[list[str]], line_end: str) -> None:
    body = "".join(line_end.join(block) + 2 * line_end for block in blocks).encode()
    theirs = [
        (event.event or "", event.data)
        for event in SSEDecoder().iter_bytes(iter([body]))
        if event.data  # it also gives events of comments and names alone
    ]
    assert [(name, data) for name, data in said(body) if data] == theirs
