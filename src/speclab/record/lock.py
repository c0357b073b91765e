"""One run at a time on an arm's folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from speclab.errors import UserError

LOCK_FILE = ".lock"


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep every other run out of a folder until this block ends; the system lets go of it if the process dies.

    Parameters
    ----------
    folder : Path
        An arm's folder; made where it is missing.

    Raises
    ------
    UserError
        Another run is at work there, or the folder cannot be written.
    """
    file = folder / LOCK_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise _unwritable(folder, error) from None
    try:
        if not _taken(descriptor):
            pid = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
            problem = f"another run is at work on this arm (pid {pid})"
            raise UserError(problem, "wait for it to end, or give this one a folder of its own", file=folder)
        try:
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        except OSError as error:
            raise _unwritable(folder, error) from None
        yield
    finally:
        os.close(descriptor)  # the file stays: to delete it would let two runs hold two files of the same name


def _unwritable(folder: Path, error: OSError) -> UserError:
    problem = f"the folder could not be written ({error.strerror or error})"
    return UserError(problem, "free the disk or mend its permissions", file=folder)


def _taken(descriptor: int) -> bool:
    """Take the lock and return True, or return False where another process has it."""
    if sys.platform == "win32":
        return True  # no flock there; nothing but the simulator runs on it
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True
