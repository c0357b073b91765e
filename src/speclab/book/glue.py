"""Hand a number from a notebook to the prose, without the book's own packages in the kernel."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

# MyST-NB reads values for `{glue:text}` from outputs of this type, named by the output's "scrapbook" metadata
PREFIX = "application/papermill.record/"


def paste(name: str, value: float | str) -> None:
    """Store one value under a name that chapters can print with ``{glue:text}`path::name:.2f` ``.

    Parameters
    ----------
    name : str
        Unique within the notebook.
    value : float or str
        A number (Python's or a NumPy scalar) or text. Numbers are kept to six significant digits,
        so that the last bit of a sum does not make the notebook differ between machines.

    Raises
    ------
    TypeError
        The value is neither a number nor text: the notebook must put a missing figure in words.
    """
    from IPython.display import display  # the book's build reads `PREFIX` here and shows nothing

    data = {f"{PREFIX}text/plain": repr(_plain(value))}
    display(data, raw=True, metadata={"scrapbook": {"name": name, "mime_prefix": PREFIX}})


def paste_beside(rows: pd.DataFrame) -> None:
    """Store published figures and ours, ``published_<id>`` and ``ours_<id>``; missing ones are left out."""
    import pandas as pd

    for row in rows.itertuples():
        for name in ("published", "ours"):
            if pd.notna(value := getattr(row, name)):
                paste(f"{name}_{row.id}", value)


def _plain(value: object) -> int | float | str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"can only paste a number or a text, not {value!r}")
    number = float(value)
    if number != number:
        raise TypeError("cannot paste NaN: say in words what is missing")
    return int(number) if number.is_integer() and abs(number) < 1e6 else float(f"{number:.6g}")
