from __future__ import annotations

import json

import pytest

from speclab.engines.completion import authorization, completion, page, request, retry_after_s
from speclab.engines.http1 import head
from speclab.errors import UserError
from speclab.lab import Sampling


def test_a_request_is_its_head_and_its_body() -> None:
    body = completion("m", "Why \u00e9?", Sampling(temperature=0, max_tokens=5, seed=7))
    sent = request("http://me:pass@host:8000/proxy", authorization("http://me:pass@host:8000/proxy", "key"), body)
    top, _, content = sent.partition(b"\r\n\r\n")
    assert top.decode().split("\r\n") == [
        "POST /proxy/v1/chat/completions HTTP/1.1",
        "Host: host:8000",
        "User-Agent: speclab",
        "Accept: */*",
        "Accept-Encoding: identity",
        "Authorization: Basic bWU6cGFzcw==",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
    ]
    assert json.loads(content) == body


def test_g10_a_page_is_asked_for_with_the_key() -> None:
    sent = page("http://host", "/metrics", authorization("http://host", "key"))
    assert sent.startswith(b"GET /metrics HTTP/1.1\r\nHost: host\r\n")
    assert b"\r\nAuthorization: Bearer key\r\n" in sent


@pytest.mark.parametrize("key", ["sk-1\n", "sk-\u00e9", "a\r\nHost: other"])
def test_a_key_that_no_header_carries_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(UserError, match=r"\$OPENAI_API_KEY: the key holds a character") as error:
        authorization("http://host", key)
    assert key not in str(error.value)


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ("Retry-After: 3", 3.0),
        ("Retry-After: 0", 0.0),
        ("Date: Tue, 01 Dec 2026 13:00:00 GMT\r\nRetry-After: Tue, 01 Dec 2026 13:00:07 GMT", 7.0),
        ("Date: Tue, 01 Dec 2026 13:00:00 GMT\r\nRetry-After: Tue, 01 Dec 2026 12:00:00 GMT", 0.0),
        ("Retry-After: Tue, 01 Dec 2026 13:00:07 GMT", None),
        ("Retry-After: soon", None),
        ("Retry-After: -3", None),
        ("X-Other: 3", None),
    ],
)
def test_how_long_a_refusal_asks_to_wait(headers: str, wait_s: float | None) -> None:
    top = head(f"HTTP/1.1 429 Too Many Requests\r\n{headers}\r\n\r\n".encode())
    assert top is not None
    assert retry_after_s(top) == wait_s
