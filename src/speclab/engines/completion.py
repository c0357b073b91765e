"""A chat completion as bytes on the wire, made before anything is timed."""

from __future__ import annotations

import base64
import json
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from speclab.engines.http1 import ResponseHead
from speclab.engines.stream import STREAM_OPTIONS
from speclab.errors import UserError
from speclab.lab import Sampling

PATH = "/v1/chat/completions"


def authorization(root: str, api_key: str) -> str:
    """Return the header that a server is shown: user and password of its address where it holds them, else the key.

    Raises
    ------
    UserError
        The key cannot be sent.
    """
    parts = urlsplit(root)
    if parts.username is not None or parts.password is not None:
        pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        return "Basic " + base64.b64encode(pair.encode()).decode()
    if not (api_key.isascii() and api_key.isprintable()):
        raise UserError(
            "the key holds a character that no header can carry (a line's end?)",
            "set it again, as in: export OPENAI_API_KEY=...",
            key="$OPENAI_API_KEY",
        )
    return f"Bearer {api_key}"


def request(root: str, authorized_by: str, body: dict[str, Any]) -> bytes:
    """Return a completion's request, head and body.

    Parameters
    ----------
    root : str
        Address that the API's ``/v1`` hangs on.
    authorized_by : str
        From `authorization`.
    body : dict
        From `completion`.
    """
    content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
    length = f"Content-Length: {len(content)}"
    return _head("POST", root, PATH, authorized_by, "Content-Type: application/json", length) + content


def page(root: str, path: str, authorized_by: str) -> bytes:
    """Return the request for a page of the server."""
    return _head("GET", root, path, authorized_by)


def _head(method: str, root: str, path: str, authorized_by: str, *more: str) -> bytes:
    parts = urlsplit(root)
    host = parts.netloc.rpartition("@")[2].encode("ascii" if parts.netloc.isascii() else "idna").decode()
    lines = (
        f"{method} {quote(parts.path, safe='/%')}{path} HTTP/1.1",
        f"Host: {host}",
        "User-Agent: speclab",
        "Accept: */*",
        "Accept-Encoding: identity",
        f"Authorization: {authorized_by}",
        *more,
        "",
        "",
    )
    return "\r\n".join(lines).encode()


def completion(model: str, text: str, sampling: Sampling) -> dict[str, Any]:
    """Return the body of a streamed chat completion; vLLM's own key is only sent where it is asked for."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": text}],
        "temperature": sampling.temperature,
        "max_tokens": sampling.max_tokens,
        "seed": sampling.seed,
        "stream": True,
        "stream_options": STREAM_OPTIONS,
    }
    if sampling.ignore_eos:
        body["ignore_eos"] = True
    return body


def retry_after_s(head: ResponseHead) -> float | None:
    """Return how long a server that refuses asks to wait, s; None where it does not say, or not in numbers.

    A date is taken against the server's own clock, which it sends along.
    """
    said = head.headers.get("retry-after", "")
    try:
        if said.isascii() and said.isdigit():
            return float(said)
        return max(0.0, (parsedate_to_datetime(said) - parsedate_to_datetime(head.headers["date"])).total_seconds())
    except (ValueError, TypeError, KeyError, OverflowError):
        return None
