"""The address of a server that is up: checked before anything is sent there, and without its secrets in a record."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlsplit, urlunsplit

from speclab.errors import UserError


def root(base_url: str) -> str:
    """Return the address that the API's ``/v1`` hangs on, as a client connects to it.

    Parameters
    ----------
    base_url : str
        Address of the API, with or without its ``/v1``.

    Raises
    ------
    UserError
        It is no address of a server, or holds a query or a fragment, which no path can follow.
    """
    parts = _split(base_url)
    return urlunsplit((parts.scheme, parts.netloc, _path(parts), "", ""))


def identity(base_url: str) -> str:
    """Return the address in one spelling and without user name and password, as records and messages name it.

    Raises
    ------
    UserError
        As of `root`.
    """
    parts = _split(base_url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    return urlunsplit((parts.scheme, f"{host}:{port}", _path(parts), "", ""))


def is_loopback(url: str) -> bool:
    """Return whether an address is this machine's own."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _path(parts: SplitResult) -> str:
    return parts.path.rstrip("/").removesuffix("/v1").rstrip("/")


def _split(base_url: str) -> SplitResult:
    try:
        parts = urlsplit(base_url.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError
        if parts.port == 0 or any(mark.isspace() or not mark.isprintable() for mark in parts.netloc + parts.path):
            raise ValueError
    except ValueError:
        found = base_url.rpartition("@")[2]  # what stands before it may be a password
        raise UserError(
            f"found {found!r}, which is no address of a server",
            "give one like http://127.0.0.1:8000/v1 (or in SPECLAB_BASE_URL)",
            key="--base-url",
        ) from None
    return parts
