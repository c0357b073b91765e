"""Where the checkout's folders are, whatever the working directory is."""

from __future__ import annotations

import os
from pathlib import Path


def root() -> Path:
    """Return the checkout: ``$SPECLAB_ROOT`` if set, else the folder of this (editable) package."""
    return Path(os.environ.get("SPECLAB_ROOT", Path(__file__).parents[2]))


def labs() -> Path:
    """Return the folder of the labs, one folder each."""
    return root() / "labs"


def runs() -> Path:
    """Return the folder of the recorded cells, ``<engine>-<device>/<lab>/<arm>/<cell>``."""
    return root() / "data" / "runs"


def derived() -> Path:
    """Return the folder of the tables derived from records, ``<lab>/<engine>-<device>/<arm>.*.csv``."""
    return root() / "data" / "derived"


def published() -> Path:
    """Return the folder of figures that other people published, each with its source."""
    return root() / "data" / "published"


def drafters() -> Path:
    """Return the folder of the kept drafters and their notes."""
    return root() / "data" / "drafters"


def coverage() -> Path:
    """Return the folder of the coverage experiment's result."""
    return root() / "data" / "coverage"


def book() -> Path:
    """Return the folder of the book's pages, executed notebooks and figures."""
    return root() / "book"


def shown(path: Path) -> str:
    """Return a path as a reader sees it: relative to the checkout if it is inside."""
    path, inside = path.resolve(), root().resolve()
    return str(path.relative_to(inside)) if path.is_relative_to(inside) else str(path)
