"""Tables of chapter 10's model that take a minute: committed, and made again when anything they depend on changes.

``data/derived/chapter10/`` holds one CSV a table and, in ``made_from.json``, the key of what each was made from (the
code that it reaches, the files that it reads) and a hash of what was written. A table whose note matches is read; any
other is stale, and `refresh` makes it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pandas as pd

from speclab import paths, whole
from speclab.cache import keys
from speclab.cache.code import package_source
from speclab.cache.notes import Notes
from speclab.errors import UserError
from speclab.replications.chapter10.capacity import capacity_over_seeds, charges
from speclab.replications.chapter10.closed_forms import draws, theorems
from speclab.replications.chapter10.gaps import gaps
from speclab.replications.chapter10.saturation import saturation
from speclab.replications.chapter10.speculation_presets import PRESETS
from speclab.replications.chapter10.sweep import points

TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "draws": draws,
    "theorems": theorems,
    "saturation": saturation,
    "gaps": gaps,
    "charges": charges,
    "points": partial(points, presets=PRESETS),
    "seeds": capacity_over_seeds,
}
"""The kept tables and the functions that make them, quickest first."""


PRESETS_NAME = "speclab.replications.chapter10.speculation_presets.PRESETS"
"""The presets that a table may depend on besides its function."""

READS = (("published", "lab09.csv"), ("labs", "lab09/ngram-k8.yml"))
"""Files that the speculation presets read: published acceptance lengths, and how long n-gram looks."""


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
    return [name for name in TABLES if not notes.is_fresh(name, _key(name), [_file(name)])]


def refresh(names: Iterable[str] | None = None, progress: Callable[[str], None] = lambda line: None) -> list[str]:
    """Make tables again and keep them; return their names.

    Parameters
    ----------
    names : iterable of str, optional
        Which; the stale ones by default.
    progress : callable, optional
        Called with the name of each table that is made.
    """
    todo = stale() if names is None else [name for name in TABLES if name in set(names)]
    notes = _notes()
    for name in todo:
        progress(name)
        whole.write(_file(name), TABLES[name]().to_csv(index=False, lineterminator="\n"), f"the table {name}")
        notes.keep(name, _key(name), [_file(name)])
    return todo


def _key(name: str) -> str:
    """Return a hash of everything that a table depends on, except the locked versions of libraries."""
    make = TABLES[name]
    function = make.func if isinstance(make, partial) else make
    code = package_source().sha256(
        f"{function.__module__}.{function.__qualname__}", *((PRESETS_NAME,) if make is not function else ())
    )
    return keys.joined(code, keys.of_files(getattr(paths, folder)() / file for folder, file in READS))


def _notes() -> Notes:
    return Notes(folder() / "made_from.json")


def _file(name: str) -> Path:
    return folder() / f"{name}.csv"
