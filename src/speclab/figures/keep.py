"""Keep a figure as the SVG that the book shows, the same to the byte each time."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from IPython.display import SVG
from matplotlib.figure import Figure

from speclab import paths
from speclab.figures.style import SETTINGS


def keep(figure: Figure, name: str, folder: Path | None = None) -> SVG:
    """Write a figure to ``book/figures/<name>.svg`` and return it for display.

    Parameters
    ----------
    figure : Figure
        What to keep.
    name : str
        The file's stem; chapters refer to it.
    folder : Path, optional
        Another folder than the book's.
    """
    into = folder or paths.book() / "figures"
    into.mkdir(parents=True, exist_ok=True)
    file = into / f"{name}.svg"
    with mpl.rc_context(SETTINGS):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight")
    return SVG(filename=str(file))  # type: ignore[no-untyped-call]
