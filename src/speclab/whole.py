"""A small file, written whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from speclab.errors import UserError


def write(file: Path, content: str | bytes, what: str) -> None:
    """Write a file beside its place, then put it there; make its folder where it is missing.

    Parameters
    ----------
    file : Path
        Where it belongs; an older one is replaced.
    content : str or bytes
        A text, written as UTF-8, or bytes.
    what : str
        What it is, for the message (``the text check``).

    Raises
    ------
    UserError
        The folder cannot be written.
    """
    new = file.with_name(f".{file.name}.{os.getpid()}.new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        new.write_bytes(content.encode() if isinstance(content, str) else content)
        new.replace(file)
    except OSError as error:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        problem = f"{what} could not be written ({error.strerror or error})"
        raise UserError(problem, "free the disk or mend its permissions", file=file) from None


def update(file: Path, content: str, what: str) -> None:
    """Write a text file as `write` does, where it differs from the one that is there."""
    if not file.exists() or file.read_text(encoding="utf-8") != content:
        write(file, content, what)
