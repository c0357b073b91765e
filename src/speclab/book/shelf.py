"""A lab's part of the book, from ``labs/<lab>/book.yml``; every key is optional."""

from __future__ import annotations

from pathlib import Path

from speclab import lab as labs
from speclab import paths
from speclab.config import Chosen, read_yaml, validated
from speclab.errors import UserError

FILE = "book.yml"

QUESTIONS = (
    "method",
    "speed_up",
    "acceptance",
    "milliseconds",
    "ngram",
    "revision",
    "spare_compute",
    "conclusions",
)
"""Templates in ``notebooks/lab`` that are executed for every lab, in the order of the chapters."""


class Shelf(Chosen):
    """A lab's part of the book."""

    chapters: str | None = None
    """Folder of ``book/`` with the lab's chapters; none by default."""
    also: tuple[str, ...] = ()
    """Further templates in ``notebooks/lab`` that are executed for this lab."""
    short: str | None = None
    """Prefix of the titles of the lab's notebooks in the contents."""
    pages: tuple[str, ...] = ()
    """Pages elsewhere in the book that are about this lab alone."""
    written_for: str | None = None
    """The badge of the results that the chapters were written for: these must have every figure that they quote."""
    place: int = 99
    """Rank of the lab's notebooks among those of other labs in the contents; ties go by name."""

    @property
    def templates(self) -> tuple[str, ...]:
        """The templates of the lab's analyses, in the order of the contents."""
        return *QUESTIONS, *self.also


def of(lab: str) -> Shelf:
    """Return a lab's part of the book.

    Raises
    ------
    UserError
        The file holds a mistake, or names a template or folder that is not there.
    """
    file = paths.labs() / lab / FILE
    if not file.exists():
        return Shelf(short=lab)
    shelf = validated(Shelf, read_yaml(file), file)
    for name in shelf.also:
        if not template(f"lab/{name}").exists():
            known = ", ".join(sorted(path.stem for path in template("lab/x").parent.glob("*.ipynb")))
            raise UserError(f"no template {name!r}", f"notebooks/lab holds {known}", file=file, key="also")
    if shelf.chapters is not None and not (paths.book() / shelf.chapters).is_dir():
        raise UserError(f"no folder {shelf.chapters!r} in book/", "name the folder of its chapters", file=file,
                        key="chapters")  # fmt: skip
    return shelf


def template(name: str) -> Path:
    """Return a template's file."""
    return paths.root() / "notebooks" / f"{name}.ipynb"


def every_lab() -> dict[str, Shelf]:
    """Return each lab's part of the book, in the order of the contents."""
    shelves = {name: of(name) for name in labs.names()}
    return dict(sorted(shelves.items(), key=lambda item: (item[1].place, item[0])))
