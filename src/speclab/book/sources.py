"""Where the numbers of each lab come from, as the pages read it: ``book/sources.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from speclab import lab as labs
from speclab import paths, results
from speclab.book import badge, shelf
from speclab.errors import UserError
from speclab.record import whole


def file() -> Path:
    """Return the file that holds the sources."""
    return paths.book() / "sources.json"


def of_labs() -> dict[str, dict[str, Any]]:
    """Return for each lab that has results: its source, what kind it is, its problems and its pages.

    Returns
    -------
    dict
        Lab to ``source`` (the badge's text), ``kind`` (simulated or measured), ``engine``, ``problems`` (sentences),
        ``pages`` (folders below ``book/``) and ``strict`` (whether its chapters were written for these results).
    """
    made = {}
    for name, part in shelf.every_lab().items():
        lab = labs.load(name)
        try:
            source = results.of(name).source
        except UserError:
            continue  # nothing of it has been run
        folders = [f"runs/{name}/", f"analysis/{name}/", *([f"{part.chapters}/"] if part.chapters else []), *part.pages]
        made[name] = {
            "source": source,
            "kind": badge.kind(source),
            "engine": lab.engine,
            "problems": results.problems(name),
            "pages": folders,
            "strict": source == part.written_for,
        }
    return made


def write() -> None:
    """Write the sources, where they differ from those that are there."""
    text = json.dumps(of_labs(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    if not file().exists() or file().read_text(encoding="utf-8") != text:
        whole.write(file(), text, "the sources of the labs")
