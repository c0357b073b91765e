"""Notes on what was made: for each thing, the key it was made under and a hash of the files it left."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from speclab import whole
from speclab.cache import keys


class Notes:
    """The notes of one file.

    Parameters
    ----------
    file : Path
        JSON; created where it is missing, and started afresh where it is damaged.
    forget : bool
        Whether to ignore what it holds.
    """

    def __init__(self, file: Path, *, forget: bool = False) -> None:
        self._file = file
        self._notes = {} if forget else _read(file)

    def is_fresh(self, name: str, key: str, left: Iterable[Path]) -> bool:
        """Return whether a thing was made under this key, and the files it left are unchanged."""
        return self._notes.get(name) == _note(key, left)

    def keep(self, name: str, key: str, left: Iterable[Path]) -> None:
        """Note the key that a thing was made under, and the files it left; the file is written atomically."""
        self._notes = {**_read(self._file), **self._notes, name: _note(key, left)}
        text = json.dumps(self._notes, indent=1, sort_keys=True) + "\n"
        whole.write(self._file, text, "the notes of what was made")


def _note(key: str, left: Iterable[Path]) -> dict[str, str]:
    return {"made_from": key, "left": keys.of_files(left)}


def _read(file: Path) -> dict[str, dict[str, str]]:
    try:
        notes: dict[str, dict[str, str]] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return notes if isinstance(notes, dict) else {}
