"""An HTTP/1.1 response, read from the pieces in which it came off the wire.

While a response comes only one thing has to be known at once: whether it has ended (`Framing`). The rest is read when
time no longer matters (`whole`), and then each byte of the body is known by the piece that brought it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

MOST_HEAD_BYTES = 64 * 1024
MOST_LINE_BYTES = 4096
"""Longest line that gives a chunk's size, its extensions included."""


class NotHttp(ValueError):  # noqa: N818 - what a server did, told in one line
    """Bytes that are no HTTP/1.1 response."""


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """Status line and headers.

    Attributes
    ----------
    status : int
        Status of the response.
    headers : dict of str to str
        Names in lower case; of a name that comes twice, the last.
    size : int
        Bytes before the body, interim responses included.
    """

    status: int
    headers: dict[str, str]
    size: int

    @property
    def is_chunked(self) -> bool:
        """Whether the body comes in chunks; else it has a length, or ends with the connection."""
        return "chunked" in self.headers.get("transfer-encoding", "").lower()

    @property
    def length(self) -> int | None:
        """Bytes of the body, where the server says so."""
        if self.is_chunked:
            return None
        if self.status in (204, 304):
            return 0
        return int(self.headers["content-length"]) if "content-length" in self.headers else None

    @property
    def keeps_alive(self) -> bool:
        """Whether the connection may carry another request."""
        ends_by_itself = self.is_chunked or self.length is not None
        return ends_by_itself and "close" not in self.headers.get("connection", "").lower()


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a response.

    Attributes
    ----------
    content : bytes
        Without the framing.
    ends : ndarray of int64, shape (pieces,)
        How many bytes of `content` had come with each piece.
    is_whole : bool
        Whether its last byte is the last that came.
    """

    content: bytes
    ends: NDArray[np.int64]
    is_whole: bool

    def piece_of(self, end: Sequence[int]) -> NDArray[np.int64]:
        """Return the piece that brought the last byte of each stretch that ends before `end`."""
        return np.searchsorted(self.ends, end, side="left").astype(np.int64)


@dataclass(slots=True)
class Framing:
    """Says whether a response has ended, from its pieces as they come; each is looked at once.

    Attributes
    ----------
    head : ResponseHead, optional
        Once it has come.
    has_ended : bool
        Whether the last byte of the response has come.
    """

    head: ResponseHead | None = None
    has_ended: bool = False
    _rest: bytes = b""
    _received: int = 0

    def look(self, data: bytes) -> bool:
        """Take in what came since the last look, and return whether the response has ended.

        Raises
        ------
        NotHttp
            It is no response, or more than one.
        """
        data = self._rest + data
        if self.head is None:
            self.head = head(data)
            if self.head is None:
                self._rest = data
                return False
            data = data[self.head.size :]
        if self.head.is_chunked:
            chunks = _chunks(data)
            self.has_ended, self._rest = chunks.has_ended, data[chunks.after :]
            beyond = len(self._rest) if self.has_ended else 0
        else:
            self._rest = b""
            self._received += len(data)
            length = self.head.length
            self.has_ended = length is not None and self._received >= length
            beyond = self._received - length if length is not None and self.has_ended else 0
        if beyond:
            raise NotHttp(f"{beyond} bytes follow the response")
        return self.has_ended


def head(data: bytes) -> ResponseHead | None:
    """Return the head at the beginning of some bytes; None where it has not come whole.

    Interim responses (1xx) before it are passed over.

    Raises
    ------
    NotHttp
        The bytes begin with no head, or with one of more than `MOST_HEAD_BYTES`.
    """
    start = 0
    while True:
        end = data.find(b"\r\n\r\n", start)
        if end < 0:
            begun = data[start : start + 5]
            if not b"HTTP/".startswith(begun) or len(data) - start > MOST_HEAD_BYTES:
                raise NotHttp("it does not begin as an HTTP response")
            return None
        first, *lines = data[start:end].decode("latin-1").split("\r\n")
        version, _, rest = first.partition(" ")
        status = rest[:3]
        if version not in ("HTTP/1.1", "HTTP/1.0") or not (status.isascii() and status.isdigit() and len(status) == 3):
            raise NotHttp("it does not begin as an HTTP response")
        start = end + 4
        if not 100 <= int(status) < 200:
            headers = {
                name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
            }
            length = headers.get("content-length", "0")
            if not (length.isascii() and length.isdigit()):
                raise NotHttp("its length is no number")
            if version == "HTTP/1.0":
                headers.setdefault("connection", "close")
            return ResponseHead(int(status), headers, start)


def body(head: ResponseHead, pieces: Sequence[bytes]) -> Body:
    """Return the body that some pieces hold, as far as it has come.

    Parameters
    ----------
    head : ResponseHead
        Of the response.
    pieces : sequence of bytes
        All that came, the head included.

    Raises
    ------
    NotHttp
        A chunk is not framed as one.
    """
    data = b"".join(pieces)
    raw_ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64) - head.size
    data = data[head.size :]
    if not head.is_chunked:
        return Body(data, raw_ends.clip(min=0), len(data) == head.length if head.length is not None else True)
    chunks = _chunks(data)
    is_whole = chunks.has_ended and chunks.after == len(data)
    if not chunks.starts:
        return Body(b"", np.zeros(len(pieces), dtype=np.int64), is_whole)
    starts, ends = np.asarray(chunks.starts, dtype=np.int64), np.asarray(chunks.ends, dtype=np.int64)
    before = np.concatenate([[0], np.cumsum(ends - starts)])
    place = np.searchsorted(starts, raw_ends, side="right") - 1
    within = np.minimum(raw_ends, ends[place]) - starts[place]
    came = np.where(place < 0, 0, before[place] + within)
    return Body(b"".join([data[a:b] for a, b in zip(chunks.starts, chunks.ends, strict=True)]), came, is_whole)


@dataclass(slots=True)
class _Chunks:
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    """Where the content of each chunk lies; the last may be cut off."""
    after: int = 0
    """Where the first chunk that has not come whole begins."""
    has_ended: bool = False


def _chunks(data: bytes) -> _Chunks:
    found = _Chunks()
    while True:
        line_end = data.find(b"\r\n", found.after)
        if line_end < 0:
            if len(data) - found.after > MOST_LINE_BYTES:
                raise NotHttp("a chunk does not begin with its size")
            return found
        size = _size(data[found.after : line_end])
        start = line_end + 2
        if size == 0:
            return _trailers(data, start, found)
        found.starts.append(start)
        found.ends.append(min(start + size, len(data)))
        rest = data[start + size : start + size + 2]
        if not b"\r\n".startswith(rest):
            raise NotHttp("a chunk is longer than it says")
        if len(rest) < 2:
            return found
        found.after = start + size + 2


def _trailers(data: bytes, start: int, found: _Chunks) -> _Chunks:
    while (end := data.find(b"\r\n", start)) >= 0:
        if end == start:
            found.after, found.has_ended = end + 2, True
            return found
        start = end + 2
    return found


def _size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not digits or len(digits) > 16 or digits.strip(b"0123456789abcdefABCDEF"):
        raise NotHttp("a chunk does not begin with its size")
    return int(digits, 16)
