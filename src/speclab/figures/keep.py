"""Keep a figure as the SVG that the book shows, the same to the byte each time."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from speclab import paths
from speclab.figures.style import SETTINGS


@dataclass(frozen=True, slots=True)
class Kept:
    """A figure in a file, as a notebook shows it: a reference to the file and its digest, not the picture."""

    file: Path
    caption: str
    alt: str

    def __repr__(self) -> str:
        """Return the file's name and digest: a notebook that draws another picture differs here."""
        return f"{self.file.name} sha256:{hashlib.sha256(self.file.read_bytes()).hexdigest()[:32]}"

    def _repr_markdown_(self) -> str:
        return f"![{self.alt}]({self._reference()})\n\n{self.caption}"

    def _reference(self) -> str:
        # Jupyter and nbval start a kernel in its notebook's folder; papermill starts it in the checkout's root, and its
        # output is a page of the book, two folders down (`speclab.book.papermill_engine` handles other folders)
        here = Path.cwd()
        page = paths.book() / "analysis" / "page" if here == paths.root().resolve() else here
        return Path(os.path.relpath(self.file, page)).as_posix()


def keep(figure: Figure, name: str, *, caption: str, alt: str, folder: Path | None = None) -> Kept:
    """Write a figure to ``book/figures/<name>.svg`` and return it for display.

    Parameters
    ----------
    figure : Figure
        What to keep.
    name : str
        The file's stem; chapters refer to it.
    caption, alt : str
        What it shows, and a description for those who cannot see it. Markdown; no square brackets in `alt`.
    folder : Path, optional
        Another folder instead of the book's.
    """
    into = folder or paths.book() / "figures"
    into.mkdir(parents=True, exist_ok=True)
    file = into / f"{name}.svg"
    with mpl.rc_context(SETTINGS):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight")
    return Kept(file, caption, alt)
