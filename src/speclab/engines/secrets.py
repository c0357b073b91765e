"""Keys and passwords, kept out of every text that comes from a server or holds an address.

A server may quote the key that it refuses, and a client library the address with its password: what is shown, recorded
or raised goes through `redacted` first, and before it is shortened, since half a key would no longer be recognised.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Iterator
from urllib.parse import quote, quote_plus, unquote, urlsplit

MASK = "[redacted]"
PLACEHOLDERS = frozenset({"", "none", "EMPTY"})
"""Keys for servers that ask for none; they are no secrets, and texts hold these words."""

_CREDENTIALS = re.compile(r"(?P<scheme>\b[a-zA-Z][a-zA-Z0-9+.-]*://)[^\s/?#@\"'<>]*(?:@[^\s/?#@\"'<>]*)*@")


def redacted(text: str, secrets: Collection[str]) -> str:
    """Return a text without the secrets, and without the credentials of any address in it.

    Parameters
    ----------
    text : str
        Whole, not shortened.
    secrets : collection of str
        Keys and passwords. Each is also found as an address, a form or JSON spells it; `PLACEHOLDERS` are left alone.

    Returns
    -------
    str
        Secrets replaced by `MASK`; ``https://me:password@host`` is ``https://host``.
    """
    return _CREDENTIALS.sub(r"\g<scheme>", masked(text, secrets))


def masked(text: str, secrets: Collection[str]) -> str:
    """Return a text without the secrets, its addresses as they are: for what a model wrote."""
    spellings = {spelling for secret in secrets for spelling in _spellings(secret)}
    for spelling in sorted(spellings, key=len, reverse=True):  # a secret may be the beginning of another
        text = text.replace(spelling, MASK)
    return text


def of_address(url: str) -> frozenset[str]:
    """Return the secrets in an address: its password, and what a client makes of user and password for its header."""
    try:
        user, password = urlsplit(url).username or "", urlsplit(url).password or ""
    except ValueError:
        return frozenset()
    pair = f"{unquote(user)}:{unquote(password)}"
    return frozenset({password, unquote(password), base64.b64encode(pair.encode()).decode()} if password else ())


def _spellings(secret: str) -> Iterator[str]:
    if secret not in PLACEHOLDERS:
        yield from (secret, quote(secret), quote(secret, safe=""), quote_plus(secret))
        yield from (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
