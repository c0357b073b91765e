"""What ``book/sources.json`` says about each lab, for the Sphinx extension; `speclab.book.sources` writes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from speclab.errors import UserError

FILE = "sources.json"


class LabSource(BaseModel):
    """Where the results of one lab come from.

    Attributes
    ----------
    source : str
        The text of the lab's badge.
    kind : str
        Its first word: simulated or measured.
    engine : str
        The engine that ran it.
    problems : tuple of str
        Sentences that every page of the lab must show: two machines, an arm that is missing.
    pages : tuple of str
        Prefixes of the names of the lab's pages.
    strict : bool
        Whether a figure that a page quotes and no notebook pasted fails the build. It does for the results that the
        chapters were written for; anyone else's may lack an arm.
    """

    model_config = ConfigDict(frozen=True)

    source: str
    kind: str
    engine: str
    problems: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    strict: bool = False

    @property
    def device(self) -> str:
        """The machine or machines: the last item in the badge's brackets."""
        brackets = re.findall(r"\(([^()]*)\)", self.source)
        return " and ".join(dict.fromkeys(text.rpartition(", ")[2] for text in brackets)) or "an unknown machine"


_SOURCES = TypeAdapter(dict[str, LabSource])


def read(book: Path) -> dict[str, LabSource]:
    """Return the source of each lab by its name; nothing for a book without labs.

    Raises
    ------
    UserError
        The file is not what the build writes.
    """
    file = book / FILE
    if not file.is_file():
        return {}
    try:
        return _SOURCES.validate_json(file.read_bytes())
    except ValidationError as error:
        raise UserError(error.errors()[0]["msg"], "let the build write it again: make notebooks", file=file) from error


def owner(labs: Mapping[str, LabSource], page: str) -> str | None:
    """Return the lab that a page belongs to, if any."""
    return next((name for name, lab in labs.items() if page.startswith(lab.pages)), None)
