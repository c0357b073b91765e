"""The part of ``_toc.yml`` that follows from the labs: the list of executed notebooks, below its marker line."""

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
        The marker line above the list is missing.
    """
    head, mark, _ = text.partition(MARK)
    if not mark:
        raise UserError("holds no line that says where the notebooks stand",
                        f"put `{MARK.strip()}` below the `sections:` of the notebooks", file=file())  # fmt: skip
    return head + mark + "".join(_entry(page) for page in pages)


def _entry(page: Page) -> str:
    title = f'            title: "{page.title}"\n' if page.title else ""
    return f"          - file: {page.name}\n{title}"
