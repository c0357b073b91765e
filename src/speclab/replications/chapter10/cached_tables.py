"""Tables of chapter 10's model that take a minute: committed, and made again when what decides them has changed.

``data/derived/chapter10/`` holds one CSV a table, and in ``made_from.json`` for each the hash of what it was made from
(the model's source, the figures and assumptions it reads) and of what was written. A table whose hashes fit is read;
any other is stale, and `refresh` makes it again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path

import pandas as pd

from speclab import paths
from speclab.errors import UserError
from speclab.record import whole
from speclab.replications.chapter10.capacity import capacity_over_seeds, charges
from speclab.replications.chapter10.closed_forms import draws, theorems
from speclab.replications.chapter10.gaps import gaps
from speclab.replications.chapter10.levers import LEVERS
from speclab.replications.chapter10.saturation import saturation
from speclab.replications.chapter10.sweep import points

TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "draws": draws,
    "theorems": theorems,
    "saturation": saturation,
    "gaps": gaps,
    "charges": charges,
    "points": partial(points, levers=LEVERS),
    "seeds": capacity_over_seeds,
}
"""What is kept, and what makes it; the quickest first."""


DECIDING = ("roofline/*.py", "replications/chapter10/*.py", "replications/chapter10/fleet/*.py")
"""The modules of the package that decide a table."""


def folder() -> Path:
    """Return where the tables are kept."""
    return paths.derived() / "chapter10"


def read(name: str) -> pd.DataFrame:
    """Return a kept table as the function of its name in `TABLES` would.

    Raises
    ------
    UserError
        There is no such table, or it is stale.
    """
    if name not in TABLES:
        raise UserError(f"no kept table {name!r}", f"there are: {', '.join(TABLES)}", file=folder())
    if name in stale():
        remedy = "run `speclab model keep`, which takes some minutes"
        raise UserError("was made by another version of the model, or edited", remedy, file=_file(name))
    return pd.read_csv(_file(name))


def stale() -> list[str]:
    """Return the names of the tables that are missing, edited, or made by another version of the model."""
    notes = _notes()
    return [name for name in TABLES if not _file(name).is_file() or notes.get(name) != _note(name)]


def refresh(names: Iterable[str] | None = None, progress: Callable[[str], None] = lambda line: None) -> list[str]:
    """Make tables again and keep them; return their names.

    Parameters
    ----------
    names : iterable of str, optional
        Which; those that are stale where not given.
    progress : callable, optional
        Told what is being made.
    """
    todo = stale() if names is None else [name for name in TABLES if name in set(names)]
    for name in todo:
        progress(name)
        whole.write(_file(name), TABLES[name]().to_csv(index=False, lineterminator="\n"), f"the table {name}")
        text = json.dumps(_notes() | {name: _note(name)}, indent=1, sort_keys=True) + "\n"
        whole.write(_notes_file(), text, "what the tables were made from")
    return todo


@cache
def made_from() -> str:
    """Return a hash of everything that decides the tables, the locked versions of libraries apart."""
    source = Path(__file__).parents[2]
    code = [file for pattern in DECIDING for file in source.glob(pattern)]
    read_by_it = (paths.published() / "lab09.csv", paths.labs() / "lab09" / "ngram-k8.yml")
    return _sha256(
        [*((file.relative_to(source).as_posix(), file) for file in code), *((f.name, f) for f in read_by_it)]
    )


def _note(name: str) -> dict[str, str]:
    return {"made_from": made_from(), "content": _sha256([(name, _file(name))])}


def _notes() -> dict[str, dict[str, str]]:
    try:
        notes: dict[str, dict[str, str]] = json.loads(_notes_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return notes


def _file(name: str) -> Path:
    return folder() / f"{name}.csv"


def _notes_file() -> Path:
    return folder() / "made_from.json"


def _sha256(files: Iterable[tuple[str, Path]]) -> str:
    digest = hashlib.sha256()
    for name, file in sorted(files):
        digest.update(f"\0{name}\0".encode())
        digest.update(file.read_bytes() if file.is_file() else b"\0missing")
    return digest.hexdigest()
