"""Objects that take long to compute, kept under their key in ``.build/cache`` of the checkout."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from filelock import FileLock

from speclab import paths, whole
from speclab.errors import UserError

ObjectT = TypeVar("ObjectT")

MOST_KEPT = 8
"""Versions of one thing that are kept; the oldest goes first."""


def kept(name: str, key: str, make: Callable[[], ObjectT]) -> ObjectT:
    """Return an object as it was kept under a key, or make and keep it.

    A file that cannot be read or written costs the time to make the object, and nothing else.

    Parameters
    ----------
    name : str
        What it is; a file's name.
    key : str
        Hash of everything that decides it (`speclab.cache.keys`).
    make : callable
        Makes it.
    """
    try:
        folder().mkdir(parents=True, exist_ok=True)
        with FileLock(folder() / f".{name}.lock"):  # of two processes one makes it, and the other reads
            return _read_or_make(_file(name, key), make, name)
    except OSError:
        return make()


def keep(name: str, key: str, made: object) -> None:
    """Keep an object under a key, in place of what is there."""
    with suppress(OSError):
        folder().mkdir(parents=True, exist_ok=True)
        with FileLock(folder() / f".{name}.lock"):
            _write(_file(name, key), made, name)


def folder() -> Path:
    """Return the folder of what is kept."""
    return paths.root() / ".build" / "cache"


def _file(name: str, key: str) -> Path:
    return folder() / f"{name}-{key[:32]}.pickle"


def _read_or_make(file: Path, make: Callable[[], ObjectT], name: str) -> ObjectT:
    with suppress(OSError, pickle.UnpicklingError, EOFError, AttributeError, ImportError, IndexError):
        loaded: ObjectT = pickle.loads(file.read_bytes())
        return loaded
    made = make()
    _write(file, made, name)
    return made


def _write(file: Path, made: object, name: str) -> None:
    with suppress(UserError):
        whole.write(file, pickle.dumps(made, protocol=pickle.HIGHEST_PROTOCOL), "a kept object")
        _prune(name)


def _prune(name: str) -> None:
    versions = sorted(folder().glob(f"{name}-*.pickle"), key=lambda file: file.stat().st_mtime, reverse=True)
    for old in versions[MOST_KEPT:]:
        old.unlink(missing_ok=True)
