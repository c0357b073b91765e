"""Files and folders that are there whole or not at all."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from contextlib import suppress
from pathlib import Path

from speclab.errors import UserError

RENAME_EXCHANGE = 2
"""``renameat2(2)`` of Linux and ``renamex_np(2)`` of macOS: two names change places in one step."""
AT_FDCWD = -100


def exchange(one: Path, other: Path) -> bool:
    """Let two paths that are there change places in one step, where this system and file system can.

    Returns
    -------
    bool
        Whether they have. Network file systems know no such step.

    Raises
    ------
    OSError
        One of them is not there, or the folder cannot be written.
    """
    library = ctypes.CDLL(None, use_errno=True)
    paths = os.fsencode(one), os.fsencode(other)
    if sys.platform == "linux" and hasattr(library, "renameat2"):
        failed = library.renameat2(AT_FDCWD, paths[0], AT_FDCWD, paths[1], ctypes.c_uint(RENAME_EXCHANGE))
    elif sys.platform == "darwin" and hasattr(library, "renamex_np"):
        failed = library.renamex_np(*paths, ctypes.c_uint(RENAME_EXCHANGE))
    else:
        return False
    if not failed:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EXDEV):
        return False
    raise OSError(number, os.strerror(number), str(one))


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
