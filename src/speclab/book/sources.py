"""Where the numbers of each lab come from, as the pages read it: ``book/sources.json``."""

from __future__ import annotations

import json

from speclab import lab as labs
from speclab import paths, results, whole
from speclab.book import badge, lab_source, shelf
from speclab.book.lab_source import LabSource
from speclab.errors import UserError


def of_labs() -> dict[str, LabSource]:
    """Return for each lab where its results come from, their kind, their problems and its pages.

    A lab that was not run has a source saying so.
    """
    of_lab = {}
    for name, part in shelf.every_lab().items():
        lab, problems = labs.load(name), results.problems(name)
        try:
            source = results.of(name).source
        except UserError as error:
            source = f"{'simulated' if lab.engine == 'simulated' else 'measured'} (not run)"
            problems = [*problems, f"{error.problem[0].upper()}{error.problem[1:]}."]
        folders = [f"runs/{name}/", f"analysis/{name}/", *([f"{part.chapters}/"] if part.chapters else []), *part.pages]
        of_lab[name] = LabSource(
            source=source,
            kind=badge.kind(source),
            engine=lab.engine,
            problems=tuple(problems),
            pages=tuple(folders),
            strict=source == part.written_for,
        )
    return of_lab


def update() -> dict[str, str]:
    """Write the sources where they differ from the file's; return those of the labs whose source has changed.

    Figures and tables for the pages of such a lab are removed: they show the old numbers, and the new results may not
    have them.
    """
    written, current = _there(), of_labs()
    moved = {
        lab: entry.source for lab, entry in current.items() if lab not in written or written[lab].source != entry.source
    }
    for lab in moved:
        for folder in ("figures", "tables"):
            for old in (paths.book() / folder).glob(f"{lab}_*"):
                old.unlink()
    content = {lab: entry.model_dump() for lab, entry in current.items()}
    text = json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    whole.update(paths.book() / lab_source.FILE, text, "the sources of the labs")
    return moved


def _there() -> dict[str, LabSource]:
    try:
        return lab_source.read(paths.book())
    except UserError:
        return {}  # damaged, and about to be written again
