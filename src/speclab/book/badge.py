"""The label that says where a number comes from: published, simulated or measured."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from speclab.errors import UserError

if TYPE_CHECKING:
    from IPython.display import HTML

KINDS = ("published", "simulated", "measured")


def kind(source: str) -> str:
    """Return the kind of a source text, which is its first word.

    Raises
    ------
    UserError
        The text starts with none of the three kinds.
    """
    word = re.match(r"[a-z]+", source.lower())
    first = word[0] if word else ""
    if first not in KINDS:
        raise UserError(f"badge {source!r} names no source", f"start it with one of {', '.join(KINDS)}")
    return first


def classes(source: str) -> list[str]:
    """Return the CSS classes of a source's badge."""
    return ["source-badge", f"source-{kind(source)}"]


def html(source: str) -> str:
    """Return a source's badge as HTML."""
    return f'<span class="{" ".join(classes(source))}">{escape(source)}</span>'


def show(source: str) -> HTML:
    """Return a source's badge for display in a notebook."""
    from IPython.display import HTML  # neither the command line nor the book's build comes here

    return HTML(html(source))
