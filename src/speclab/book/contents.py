"""What of ``_toc.yml`` follows from the labs: the list of executed notebooks, below the line that says so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from speclab import paths
from speclab.book.pages import Page
from speclab.errors import UserError

MARK = "        # made by `make book` from here on\n"


def file() -> Path:
    """Return the book's contents."""
    return paths.root() / "_toc.yml"


def with_notebooks(text: str, pages: Sequence[Page]) -> str:
    """Return the contents with a list of notebooks in place of the one they hold.

    Parameters
    ----------
    text : str
        The contents as they are.
    pages : sequence of Page
        The notebooks, in order.

    Raises
    ------
    UserError
        The line behind which the list stands is missing.
    """
    before, mark, _ = text.partition(MARK)
    if not mark:
        raise UserError("holds no line that says where the notebooks stand",
                        f"put `{MARK.strip()}` below the `sections:` of the notebooks", file=file())  # fmt: skip
    return before + mark + "".join(_entry(page) for page in pages)


def _entry(page: Page) -> str:
    title = f'            title: "{page.title}"\n' if page.title else ""
    return f"          - file: {page.name}\n{title}"
