"""What the mock writes: HTTP heads, and the chunks of a streamed completion, each made once."""

from __future__ import annotations

import json
from typing import Any, Literal

from speclab.engines.mock_script import Script

JSON = "application/json"
LAST = b"0\r\n\r\n"
STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
Usage = Literal["running", "final", "none"]


def response(status: int, kind: str, content: str, *headers: str) -> bytes:
    """Return a whole response."""
    data = content.encode()
    lines = (f"HTTP/1.1 {status} Mock", f"Content-Type: {kind}", f"Content-Length: {len(data)}", *headers, "", "")
    return "\r\n".join(lines).encode() + data


def framed(data: bytes) -> bytes:
    """Return one chunk of a body that is sent in chunks."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def error(script: Script, status: int, reason: str) -> tuple[str, str]:
    """Return an error as a script writes it: content type and content."""
    if script.error_style == "text":
        return "text/plain", reason
    inner = {"message": reason, "type": "mock", "code": status}
    content = {"error": inner} if script.error_style == "openai" else {"object": "error", **inner}
    return JSON, json.dumps(content)


class Chunks:
    """The chunks of a script's answers, with HTTP's framing.

    Rows that are at the same place of an answer are written the same bytes, so each is made once.

    Parameters
    ----------
    script : Script
        How answers are written.
    """

    def __init__(self, script: Script):
        self._script = script
        self._made: dict[tuple[int, int, str | None, Usage], bytes] = {}
        self._about = {"id": "chatcmpl-mock", "object": "chat.completion.chunk", "created": 0, "model": script.model}

    def opening(self, usage: Usage) -> bytes:
        """Return the chunk that names the role and holds no token."""
        return self._chunk({"role": "assistant", "content": ""}, None, 0, usage)

    def event(self, tokens: int, sent: int, finish_reason: str | None, usage: Usage) -> bytes:
        """Return what an event of some tokens is, with `sent` of them up to its end."""
        key = (tokens, sent, finish_reason, usage)
        chunk = self._made.get(key)
        if chunk is None:
            chunk = self._made[key] = self._event(*key)
        return chunk

    def ending(self, sent: int, usage: Usage) -> bytes:
        """Return the end of a stream."""
        last = framed(_data({**self._about, "choices": [], "usage": self.usage(sent)})) if usage != "none" else b""
        return last + framed(b"data: [DONE]\n\n") + LAST

    def error(self, reason: str) -> bytes:
        """Return an error in a stream, and the stream's end."""
        _, content = error(self._script, 500, reason)
        return framed(f"data: {content}\n\n".encode()) + framed(b"data: [DONE]\n\n") + LAST

    def whole(self, sent: int, finish_reason: str) -> bytes:
        """Return the response to a request that asked for no stream."""
        said = {"role": "assistant", "content": self._script.token_text * sent}
        choice = {"index": 0, "message": said, "finish_reason": finish_reason}
        about = {**self._about, "object": "chat.completion", "choices": [choice], "usage": self.usage(sent)}
        return response(200, JSON, json.dumps(about))

    def usage(self, sent: int) -> dict[str, int]:
        """Return the usage after some tokens."""
        prompt = self._script.prompt_tokens
        return {"prompt_tokens": prompt, "total_tokens": prompt + sent, "completion_tokens": sent}

    def _event(self, tokens: int, sent: int, finish_reason: str | None, usage: Usage) -> bytes:
        if self._script.chunk == "token":
            ends = range(sent - tokens + 1, sent + 1)
            return b"".join(self._text(1, end, finish_reason if end == sent else None, usage) for end in ends)
        return self._text(tokens, sent, finish_reason, usage)

    def _text(self, tokens: int, sent: int, finish_reason: str | None, usage: Usage) -> bytes:
        return self._chunk({"content": self._script.token_text * tokens}, finish_reason, sent, usage)

    def _chunk(self, delta: dict[str, str], finish_reason: str | None, sent: int, usage: Usage) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        chunk: dict[str, Any] = {**self._about, "choices": [choice]}
        if usage == "running":
            chunk["usage"] = self.usage(sent)
        return framed(_data(chunk))


def _data(chunk: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(chunk, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()
