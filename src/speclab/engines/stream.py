"""One streamed chat completion, turned into the events of an `Answer`.

An event is a chunk at which the server's own running token count rose, and it holds as many tokens as it rose by.
Chunks are not counted and text is never tokenised again: under speculation one chunk holds several tokens (vllm#35471).
The running count needs ``stream_options.continuous_usage_stats``; a server that gives only the final count cannot say
which tokens came when, and its answers are errors rather than guesses.

A front end that falls behind its engine merges steps into one chunk (seen with vLLM at steps of 2 ms). Only an event of
more than k + 1 tokens gives that away, so k + 1 is a bound to check, not one to rely on.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from speclab.engines.base import Answer

MOST_TOKENS_OF_AN_EVENT = 2**15 - 1
MOST_TOKENS = 2**31 - 1
"""What a record's columns hold; a server that says more is wrong, not big."""

STREAM_OPTIONS = {"include_usage": True, "continuous_usage_stats": True}


class BrokenStream(Exception):  # noqa: N818 - what a server did, told in one line
    """A stream that cannot be read as an answer; the message is what goes into ``answer.error``."""


class AnswerStream:
    """Fills an answer from the bytes of a server-sent event stream.

    Parameters
    ----------
    answer : Answer
        Gets the events as they come, and the rest at `finish`.
    """

    def __init__(self, answer: Answer):
        self._answer = answer
        self._event_s: list[float] = []
        self._event_tokens: list[int] = []
        answer.event_s, answer.event_tokens = self._event_s, self._event_tokens
        self._text: list[str] = []
        self._tail = b""
        self._tokens: int | None = None
        self._counted = True

    def feed(self, data: bytes, now_s: float) -> None:
        """Take in bytes as they came off the wire.

        Parameters
        ----------
        data : bytes
            Any part of the stream; an unfinished line waits for its rest.
        now_s : float
            Loop time of their arrival, s.

        Raises
        ------
        BrokenStream
            A line that is no chunk of a chat completion, an error that the server put into the stream, or a token count
            that fell or cannot be true.
        """
        *lines, self._tail = (self._tail + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                payload = line[5:].strip()
                if payload and payload != b"[DONE]":
                    self._chunk(_parsed(payload), now_s)

    def finish(self) -> None:
        """Say what the whole stream gave.

        Raises
        ------
        BrokenStream
            The stream ended before its answer did, or without the usage that the load counts by.
        """
        answer = self._answer
        if answer.finish_reason is None:
            raise BrokenStream(f"the server closed the stream after {self._tokens or 0} tokens, before its end")
        if self._tokens is None:
            raise BrokenStream(
                "the server sends no usage with a stream; it must support stream_options.include_usage and "
                "stream_options.continuous_usage_stats"
            )
        answer.output_tokens = self._tokens
        if not self._counted:
            raise BrokenStream(
                "the server sends usage only at a stream's end, so tokens cannot be told per event; it must support "
                "stream_options.continuous_usage_stats"
            )

    @property
    def text(self) -> str:
        """The answer's text so far, with what UTF-8 cannot hold replaced."""
        return encodable("".join(self._text))

    def _chunk(self, chunk: dict[str, Any], now_s: float) -> None:
        if chunk.get("error") is not None:
            raise BrokenStream(f"the server reported an error in the stream: {message(chunk)}")
        usage = _of(dict, chunk, "usage")
        choices = _of(list, chunk, "choices")
        if choices:
            choice = _of(dict, {"choices[0]": choices[0]}, "choices[0]") or {}
            content = _of(str, _of(dict, choice, "delta") or {}, "content")
            finish_reason = _of(str, choice, "finish_reason")
            if content:
                self._text.append(content)
            if finish_reason:
                self._answer.finish_reason = encodable(finish_reason)
            if not usage and (content or finish_reason):
                self._uncounted()
        if usage:
            self._usage(usage, now_s)

    def _uncounted(self) -> None:
        """Tokens came without their count: from here on nobody knows which event holds how many, nor did before."""
        self._counted = False
        self._event_s.clear()
        self._event_tokens.clear()

    def _usage(self, usage: dict[str, Any], now_s: float) -> None:
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
            self._event_s.append(now_s)
            self._event_tokens.append(tokens - before)


def message(body: Any) -> str:
    """Return the message inside an OpenAI-style error body, or the body itself, as one short line."""
    inner = body.get("error", body) if isinstance(body, dict) else body
    text = str(inner.get("message", inner) if isinstance(inner, dict) else inner)
    line = encodable(" ".join(text.split()))
    return line if len(line) <= 300 else line[:297] + "..."


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


def _parsed(payload: bytes) -> dict[str, Any]:
    try:
        chunk = json.loads(payload)
    except (ValueError, RecursionError):
        chunk = None
    if not isinstance(chunk, dict):
        raise BrokenStream(
            f"the stream holds a line that is no JSON object: {message(payload.decode(errors='replace'))}"
        )
    return chunk
