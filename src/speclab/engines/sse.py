"""Server-sent events: where each ends in a body, and what it holds (WHATWG HTML, 9.2.6).

An event ends with the blank line behind it, so that is when it has come. Lines end with LF, CR or CRLF; lines of data
of one event are joined; comments and fields that are not used here count for nothing. Two departures, both towards
servers that are not exact: an event at the very end of a body needs no blank line, and bytes that are no UTF-8 are
replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BLANK_LINE_OF_LF = re.compile(rb"\n\n")
_BLANK_LINE = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Event:
    """One event with data.

    Attributes
    ----------
    data : str
        Its lines of data, joined.
    name : str
        What the field ``event`` says; empty where there is none.
    end : int
        Where it ends in the body: behind its blank line.
    """

    data: str
    name: str
    end: int


def events(body: bytes) -> Iterator[Event]:
    """Yield the events of a body, however it was cut on the way."""
    start = len(_MARK) if body.startswith(_MARK) else 0
    blank_line = _BLANK_LINE if b"\r" in body else _BLANK_LINE_OF_LF
    while start < len(body):
        match = blank_line.search(body, start)
        block_end, end = match.span() if match else (len(body), len(body))
        event = _event(body[start:block_end], end)
        if event is not None:
            yield event
        start = end


def _event(block: bytes, end: int) -> Event | None:
    data: list[str] = []
    name = ""
    for line in _LINE_END.split(block):
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" ").decode(errors="replace"))
        elif field == b"event":
            name = value.removeprefix(b" ").decode(errors="replace")
    return Event("\n".join(data), name, end) if data else None
