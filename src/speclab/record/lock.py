"""One run at a time on an arm's folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

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
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK_FILE).acquire(timeout=0)
    except Timeout:
        raise UserError("another run is at work on this arm",
                        "wait for it to end, or give this one a folder of its own", file=folder) from None  # fmt: skip
    except OSError as error:
        problem = f"the folder could not be written ({error.strerror or error})"
        raise UserError(problem, "free the disk or mend its permissions", file=folder) from None
    with lock:
        yield
