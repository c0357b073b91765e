"""Where the numbers of each lab come from, as the pages read it: ``book/sources.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from speclab import lab as labs
from speclab import paths, results, whole
from speclab.book import badge, shelf
from speclab.errors import UserError


def file() -> Path:
    """Return the file that holds the sources."""
    return paths.book() / "sources.json"


def of_labs() -> dict[str, dict[str, Any]]:
    """Return for each lab: its source, what kind it is, its problems and its pages.

    Returns
    -------
    dict
        Lab to ``source`` (the badge's text, or that it was not run), ``kind`` (simulated or measured), ``engine``,
        ``problems`` (sentences), ``pages`` (folders below ``book/``) and ``strict`` (whether its chapters were written
        for these results).
    """
    made = {}
    for name, part in shelf.every_lab().items():
        lab, problems = labs.load(name), results.problems(name)
        try:
            source = results.of(name).source
        except UserError as error:
            source = f"{'simulated' if lab.engine == 'simulated' else 'measured'} (not run)"
            problems = [*problems, f"{error.problem[0].upper()}{error.problem[1:]}."]
        folders = [f"runs/{name}/", f"analysis/{name}/", *([f"{part.chapters}/"] if part.chapters else []), *part.pages]
        made[name] = {
            "source": source,
            "kind": badge.kind(source),
            "engine": lab.engine,
            "problems": problems,
            "pages": folders,
            "strict": source == part.written_for,
        }
    return made


def update() -> list[str]:
    """Write the sources where they differ from those that are there; return the labs whose numbers come from elsewhere.

    What was drawn and tabled for the pages of such a lab is removed: it shows the old numbers, and the new ones may
    lack it.
    """
    before, now = _there(), of_labs()
    moved = [lab for lab, entry in now.items() if before.get(lab, {}).get("source") != entry["source"]]
    for lab in moved:
        for folder in ("figures", "tables"):
            for old in (paths.book() / folder).glob(f"{lab}_*"):
                old.unlink()
    if before != now:
        text = json.dumps(now, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
        whole.write(file(), text, "the sources of the labs")
    return moved


def _there() -> dict[str, dict[str, Any]]:
    try:
        entries: dict[str, dict[str, Any]] = json.loads(file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return entries
