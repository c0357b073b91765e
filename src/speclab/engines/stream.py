"""One streamed chat completion, turned into the events of an `Answer` once it has come.

An event is a chunk at which the server's own running token count rose, and it holds as many tokens as it rose by. Its
time is that of the read which brought its last byte: an event cut in two has come with its second half, and events that
came in one read share a time (`Answer.merged_reads` counts such reads). Chunks are not counted and text is never
tokenised again: under speculation one chunk holds several tokens (vllm#35471).

The running count needs ``stream_options.continuous_usage_stats``. A server that gives only the final count (llama.cpp,
older SGLang) cannot say which tokens came when: its answers keep the times of the chunks with text, each of `UNTOLD`
tokens, and their total.

A front end that falls behind its engine merges steps into one chunk (seen with vLLM at steps of 2 ms). Only an event of
more than k + 1 tokens gives that away, so k + 1 is a bound to check, not one to rely on.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, TypeVar

import numpy as np

from speclab.engines.base import UNTOLD, Answer
from speclab.engines.http1 import NotHttp
from speclab.engines.secrets import masked, redacted
from speclab.engines.sse import Event, events
from speclab.engines.transport import Arrivals

MOST_TOKENS_OF_AN_EVENT = 2**15 - 1
MOST_TOKENS = 2**31 - 1
"""What a record's columns hold; a server that says more is wrong, not big."""
MOST_CHARACTERS_SHOWN = 300

STREAM_OPTIONS = {"include_usage": True, "continuous_usage_stats": True}


class BrokenStream(Exception):  # noqa: N818 - what a server did, told in one line
    """A stream that cannot be read as an answer; the message, through `shown`, is what goes into ``answer.error``."""


def read(answer: Answer, arrivals: Arrivals, lost: str | None = None, secrets: Collection[str] = ()) -> None:
    """Fill an answer from what came for it.

    Parameters
    ----------
    answer : Answer
        Gets its events, its text, its usage, and an error where it is none.
    arrivals : Arrivals
        What came. Where it has not ended and was not `lost`, the load cut it off, which is no error.
    lost : str, optional
        Why the rest did not come.
    secrets : collection of str
        Kept out of error and text.
    """
    stream = AnswerStream(answer)
    try:
        _read(stream, arrivals, lost)
    except BrokenStream as broken:
        answer.error = shown(str(broken), secrets)
    stream.close(secrets)


def _read(stream: AnswerStream, arrivals: Arrivals, lost: str | None) -> None:
    if arrivals.head is None:
        if lost is not None:
            raise BrokenStream(f"the connection was lost before an answer began ({lost})")
        return
    try:
        body = arrivals.body()
    except NotHttp as broken:
        raise BrokenStream(f"the server's answer cannot be read: {broken}") from None
    if arrivals.head.status != 200:
        raise BrokenStream(f"HTTP {arrivals.head.status}: {_reason(body.content)}")
    came = list(events(body.content))
    pieces = body.piece_of([event.end for event in came])
    for event, piece in zip(came, pieces.tolist(), strict=True):
        if event.data == "[DONE]":
            break
        stream.take(event, arrivals.at_s[piece], piece)
    if lost is not None:
        raise BrokenStream(f"the server closed the stream after {stream.so_far} ({lost})")
    if not arrivals.framing.has_ended:
        return
    if not body.is_whole:
        raise BrokenStream("the server's answer cannot be read: bytes follow it")
    if not came:
        raise BrokenStream(f"the server answered with no stream: {_reason(body.content)}")
    stream.finish()


class AnswerStream:
    """Fills an answer from the events of a stream.

    Parameters
    ----------
    answer : Answer
        Gets what is known of each event at `close`, and the rest as it comes.
    """

    def __init__(self, answer: Answer):
        self._answer = answer
        self._event_s: list[float] = []
        self._event_tokens: list[int] = []
        self._pieces: list[int] = []
        self._untold_s: list[float] = []
        self._untold_pieces: list[int] = []
        self._text: list[str] = []
        self._tokens: int | None = None
        self._counted = True

    @property
    def so_far(self) -> str:
        """How far the answer has come, in words."""
        return f"{self._tokens or 0} tokens" if self._counted else f"{len(self._untold_s)} events"

    def take(self, event: Event, at_s: float, piece: int) -> None:
        """Take in one event.

        Parameters
        ----------
        event : Event
            The next of the stream.
        at_s : float
            Loop time at which its last byte came, s.
        piece : int
            Number of the read that brought it.

        Raises
        ------
        BrokenStream
            It is no chunk of a chat completion, an error that the server put into the stream, or a token count that
            fell or cannot be true.
        """
        if not event.data.strip():
            return
        if event.name == "error":
            raise BrokenStream(f"the server reported an error in the stream: {_reason(event.data.encode())}")
        self._chunk(_parsed(event.data), at_s, piece)

    def finish(self) -> None:
        """Say what the whole stream gave.

        Raises
        ------
        BrokenStream
            The stream ended before its answer did, or without the usage that the load counts by.
        """
        if self._answer.finish_reason is None:
            raise BrokenStream(f"the server closed the stream after {self.so_far}, before its end")
        if self._tokens is None:
            raise BrokenStream(
                "the server sends no usage with a stream; it must support stream_options.include_usage, and "
                "stream_options.continuous_usage_stats for what one step gives"
            )
        self._answer.output_tokens = self._tokens

    def close(self, secrets: Collection[str] = ()) -> None:
        """Hand over the events and the text; what UTF-8 cannot hold is replaced, and so are secrets."""
        answer = self._answer
        if self._counted:
            event_s, pieces = self._event_s, self._pieces
            answer.event_tokens = np.asarray(self._event_tokens, dtype=np.int16)
        else:
            event_s, pieces = self._untold_s, self._untold_pieces
            answer.event_tokens = np.full(len(event_s), UNTOLD, dtype=np.int16)
        answer.event_s = np.asarray(event_s, dtype=np.float64)
        _, events_of_reads = np.unique(pieces, return_counts=True)
        answer.reads, answer.merged_reads = len(events_of_reads), int((events_of_reads > 1).sum())
        answer.text = masked(encodable("".join(self._text)), secrets)
        if answer.finish_reason is not None:
            answer.finish_reason = shown(answer.finish_reason, secrets)

    def _chunk(self, chunk: dict[str, Any], at_s: float, piece: int) -> None:
        if chunk.get("error") is not None or chunk.get("object") == "error":
            raise BrokenStream(f"the server reported an error in the stream: {message(chunk)}")
        usage = _of(dict, chunk, "usage")
        choices = _of(list, chunk, "choices")
        if choices:
            choice = _of(dict, {"choices[0]": choices[0]}, "choices[0]") or {}
            delta = _of(dict, choice, "delta") or {}
            content = _of(str, delta, "content")
            finish_reason = _of(str, choice, "finish_reason")
            if content:
                self._text.append(content)
            if finish_reason:
                self._answer.finish_reason = finish_reason
            gives = bool(content) or any(value for key, value in delta.items() if key != "role")
            if gives:
                self._untold_s.append(at_s)
                self._untold_pieces.append(piece)
            if not usage and (gives or finish_reason):
                self._counted = False  # tokens without their count: nobody knows which event holds how many
        if usage:
            self._usage(usage, at_s, piece)

    def _usage(self, usage: dict[str, Any], at_s: float, piece: int) -> None:
        tokens = _count(usage, "completion_tokens")
        if tokens is None:
            raise BrokenStream(f"the server's usage has no completion_tokens: {message(usage)}")
        if self._answer.prompt_tokens is None:
            self._answer.prompt_tokens = _count(usage, "prompt_tokens")
        before = self._tokens or 0
        if tokens < before:
            raise BrokenStream(f"the server's running token count fell from {before} to {tokens}")
        if self._counted and tokens - before > MOST_TOKENS_OF_AN_EVENT:
            raise BrokenStream(f"the server's running token count rose from {before} to {tokens} in one event")
        self._tokens = tokens
        if tokens > before and self._counted:
            self._event_s.append(at_s)
            self._event_tokens.append(tokens - before)
            self._pieces.append(piece)


def message(body: Any) -> str:
    """Return the message inside an OpenAI-style error body, or the body itself; whole, so that secrets are found."""
    inner = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(inner, dict):
        inner = inner.get("message") or inner.get("detail") or inner
    return str(inner)


def shown(text: str, secrets: Collection[str] = ()) -> str:
    """Return a text as one line that is short, that UTF-8 can hold, and without secrets."""
    line = " ".join(redacted(encodable(text), secrets).split())
    return line if len(line) <= MOST_CHARACTERS_SHOWN else line[: MOST_CHARACTERS_SHOWN - 3] + "..."


def encodable(text: str) -> str:
    """Return a text that UTF-8 can hold: JSON may carry half of a surrogate pair, and no file takes one.

    A pair that came in two halves is put together; a half that stays alone becomes U+FFFD.
    """
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


ValueT = TypeVar("ValueT", dict[str, Any], list[Any], str)


def _of(kind: type[ValueT], holder: dict[str, Any], key: str) -> ValueT | None:
    """Return a value of a chunk, which must be of its kind or null."""
    value = holder.get(key)
    if value is None or isinstance(value, kind):
        return value
    raise BrokenStream(f"the stream holds no chat completion: {key} is {message(value)!r}")


def _count(usage: dict[str, Any], key: str) -> int | None:
    value = usage.get(key)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS:
        return value
    raise BrokenStream(f"the server's usage cannot be true: {key} is {message(value)!r}")


def _parsed(data: str) -> dict[str, Any]:
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError):
        chunk = None
    if not isinstance(chunk, dict):
        raise BrokenStream(f"the stream holds an event that is no JSON object: {data}")
    return chunk


def _reason(body: bytes) -> str:
    """Return what a body says of an error."""
    text = body.decode(errors="replace").strip()
    try:
        return message(json.loads(text)) if text else "no body"
    except (ValueError, RecursionError):
        return text
