"""Data frames as tables of the book: captioned, scrollable on a phone, failed rows greyed and never dropped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

import pandas as pd
from IPython.display import HTML

_ROW = re.compile(r"<tr>")


def html(frame: pd.DataFrame, caption: str, *, failed: Sequence[bool] | None = None, digits: int = 4) -> str:
    """Return a data frame as an HTML table.

    Parameters
    ----------
    frame : pd.DataFrame
        What to show; the index is not shown.
    caption : str
        What the reader sees, with units.
    failed : sequence of bool, optional
        One for each row: a failed row is greyed.
    digits : int
        Significant digits of floating-point numbers.
    """
    if frame.empty:
        return f"<p>{escape(caption)}: none.</p>"
    table = frame.to_html(
        index=False, border=0, na_rep="–", escape=True, float_format=lambda value: f"{value:,.{digits}g}"
    )
    head, body = table.split("<tbody>")
    marks = iter(failed if failed is not None else [False] * len(frame))
    body = _ROW.sub(lambda match: '<tr class="failed">' if next(marks) else match[0], body)
    head = head.replace("<thead>", f"<caption>{escape(caption)}</caption>\n  <thead>", 1)
    return f'<div class="wide-table">\n{head}<tbody>{body}\n</div>'


def show(frame: pd.DataFrame, caption: str, *, failed: Sequence[bool] | None = None, digits: int = 4) -> HTML:
    """Return a data frame for display in a notebook; the arguments are those of `html`."""
    return HTML(html(frame, caption, failed=failed, digits=digits))
