"""Data frames as tables of the book: captioned, scrollable on a phone, failed rows greyed and never dropped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Literal

import pandas as pd
from IPython.display import HTML

from speclab import paths


def html(
    frame: pd.DataFrame,
    caption: str,
    *,
    failed: Sequence[bool] | None = None,
    digits: int = 4,
    is_text: bool = False,
) -> str:
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
    is_text : bool
        Whether the cells are words and not numbers: aligned left, and wrapped.
    """
    if frame.empty:
        return f"<p>{escape(caption)}: none.</p>"
    head = _row((str(name) for name in frame.columns), "th")
    marks = failed if failed is not None else [False] * len(frame)
    body = "\n".join(
        _row((_written(value, digits) for value in row), "td", ' class="failed"' if mark else "")
        for row, mark in zip(frame.itertuples(index=False, name=None), marks, strict=True)
    )
    # outside the scrolling box, so that a phone shows all of it
    words = f'<p class="table-caption">{escape(caption)}</p>'
    return (
        f'{words}\n<div class="wide-table{" of-text" if is_text else ""}">\n<table class="dataframe">\n'
        f"<thead>\n{head}\n</thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>"
    )


def _row(cells: Iterable[str], tag: Literal["th", "td"], attributes: str = "") -> str:
    written = "".join(f"<{tag}>{escape(cell, quote=False)}</{tag}>" for cell in cells)
    return f"<tr{attributes}>{written}</tr>"


def _written(value: object, digits: int) -> str:
    if pd.isna(value):  # type: ignore[call-overload]
        return "–"
    return number(value, digits) if isinstance(value, float) else str(value)


def number(value: float, digits: int) -> str:
    """Write a number with some significant digits, and without an exponent where thousands can be read."""
    return f"{value:,.0f}" if 10 ** (digits - 1) <= abs(value) < 1e12 else f"{value:.{digits}g}"


def show(frame: pd.DataFrame, caption: str, **how: Any) -> HTML:
    """Return a data frame for display in a notebook; the arguments are those of `html`."""
    return HTML(html(frame, caption, **how))


def keep(frame: pd.DataFrame, name: str) -> None:
    """Write a table to ``book/tables/<name>.csv``, from where chapters show it with ``{csv-table}``.

    Floats are kept to four significant digits; format a column as text where it needs another form. A table without
    rows is kept with a row "none": a chapter's ``{csv-table}`` accepts no empty file.
    """
    if frame.empty:
        columns = [str(column) for column in frame.columns] or ["table"]
        frame = pd.DataFrame([["none", *[""] * (len(columns) - 1)]], columns=columns)
    into = paths.book() / "tables"
    into.mkdir(parents=True, exist_ok=True)
    frame.to_csv(into / f"{name}.csv", index=False, float_format="%.4g")
