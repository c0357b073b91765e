"""What each notebook page of the book is made from: template, parameters, inputs and outputs.

Run pages: one for each arm of each lab, simulated now or from the kept records, wherever they were measured.
Analysis pages: the templates of ``notebooks/lab`` for each lab (`speclab.book.shelf`), and those of each other folder
of ``notebooks/`` once. What a template reads besides code, and which files it leaves besides the notebook, is in its
metadata: ``speclab.reads`` (patterns from the checkout's root, with ``{lab}``) and ``speclab.outputs`` (below
``book/``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from speclab import lab as labs
from speclab import paths
from speclab.book import shelf
from speclab.book.shelf import template
from speclab.cache import keys
from speclab.cache.code import package_source
from speclab.config import Chosen, read_yaml, validated
from speclab.record import store
from speclab.results import lab_tables


class Group(Chosen):
    """A folder of templates that are executed once, from its ``group.yml``."""

    short: str
    """Prefix of their titles in the contents."""
    pages: dict[str, str]
    """The templates in the order of the contents, each with its title there."""


@dataclass(frozen=True, slots=True)
class Page:
    """One executed notebook of the book.

    Attributes
    ----------
    name : str
        Path under ``book/`` without the suffix.
    template : Path
        The notebook it is executed from.
    parameters : dict
        What papermill injects.
    inputs, outputs : tuple of Path
        Files that decide its content, besides code and template, and the files it leaves besides the notebook.
    command : str
        Makes the same page by hand, from the checkout's root.
    title : str, optional
        Its title in the contents; its own heading by default.
    """

    name: str
    template: Path
    parameters: dict[str, Any]
    inputs: tuple[Path, ...]
    outputs: tuple[Path, ...]
    command: str
    title: str | None = None

    @property
    def notebook(self) -> Path:
        """The executed notebook."""
        return paths.book() / f"{self.name}.ipynb"

    @property
    def left(self) -> tuple[Path, ...]:
        """Every file that the page leaves."""
        return self.notebook, *self.outputs

    @property
    def key(self) -> str:
        """A hash of everything that decides the page's content."""
        files = keys.of_files([self.template, *self.inputs, paths.root() / "constraints.txt"])
        return keys.joined(_code_of(self.template), keys.of_values(self.parameters), files)


def runs() -> list[Page]:
    """Return the run pages: one for each arm of a simulated lab, and for each arm that has records here."""
    return [_run(lab, arm) for lab in map(labs.load, shelf.every_lab()) for arm in lab.arms if _has_page(lab, arm)]


def analyses() -> list[Page]:
    """Return the analysis pages: those of the labs, in the order of the chapters they belong to, then the groups'."""
    of_labs = [
        _analysis(lab, part, name)
        for lab, part in shelf.every_lab().items()
        if any(_has_page(labs.load(lab), arm) for arm in labs.load(lab).arms)
        for name in part.templates
    ]
    return [*of_labs, *(page for folder in groups() for page in _group(folder))]


def groups() -> list[str]:
    """Return the folders of templates that are executed once."""
    return sorted(file.parent.name for file in (paths.root() / "notebooks").glob("*/group.yml"))


def _has_page(lab: labs.Lab, arm: str) -> bool:
    return lab.engine == "simulated" or any(_records(lab, arm))


def _records(lab: labs.Lab, arm: str) -> Iterator[Path]:
    return paths.runs().glob(f"{lab.engine}-*/{lab.name}/{arm}/[!.]*/{store.RECORD_FILE}")


def _run(lab: labs.Lab, arm: str) -> Page:
    file = paths.labs() / lab.name / f"{arm}.yml"
    name, short = f"runs/{lab.name}/{arm}", shelf.of(lab.name).short
    recorded: dict[str, Any] = {}
    if lab.engine == "simulated":
        machines = {f"simulated-{lab.simulated.device}"} if lab.simulated else set()
        records: list[Path] = []  # made again with the page
    else:
        recorded = {"engine": lab.engine, "kept": True}
        records = sorted(_records(lab, "*"))  # the whole lab decides which source is shown
        machines = {record.parents[3].name for record in records}
    tables = [
        paths.derived() / lab.name / machine / f"{arm}.{kind}.csv" for machine in machines for kind in lab_tables.KINDS
    ]
    return Page(
        name=name,
        template=template("run_arm"),
        parameters={**read_yaml(file), **recorded},
        inputs=(paths.labs() / lab.name / "lab.yml", file, *records),
        outputs=tuple(sorted(tables)),
        command=_papermill("run_arm", name) + f" -f {paths.shown(file)}" + _options(recorded),
        title=f"{short}: {arm}" if short else None,
    )


def _analysis(lab: str, part: shelf.Shelf, name: str) -> Page:
    engine = labs.load(lab).engine
    return _page(
        f"lab/{name}",
        f"analysis/{lab}/{name}",
        {"lab": lab, "engine": engine},
        f"{part.short}: {name.replace('_', ' ')}" if part.short else None,
    )


def _group(folder: str) -> list[Page]:
    file = paths.root() / "notebooks" / folder / "group.yml"
    group = validated(Group, read_yaml(file), file)
    return [
        _page(f"{folder}/{name}", f"analysis/{folder}/{name}", {}, f"{group.short}: {title}")
        for name, title in group.pages.items()
    ]


def _page(of: str, name: str, parameters: dict[str, Any], title: str | None) -> Page:
    metadata = _metadata(template(of))
    patterns = [pattern.format(**parameters) for pattern in metadata.get("reads", [])]
    return Page(
        name=name,
        template=template(of),
        parameters=parameters,
        inputs=tuple(file for pattern in patterns for file in sorted(paths.root().glob(pattern)) if file.is_file()),
        outputs=tuple(paths.book() / output for output in metadata.get("outputs", [])),
        command=_papermill(of, name) + _options(parameters),
        title=title,
    )


def _papermill(of: str, name: str) -> str:
    return f"papermill --engine speclab notebooks/{of}.ipynb book/{name}.ipynb"


def _options(parameters: dict[str, Any]) -> str:
    return "".join(f" -p {key} {value}" for key, value in parameters.items())


def _metadata(file: Path) -> dict[str, Any]:
    metadata: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["metadata"].get("speclab", {})
    return metadata


def _code_of(file: Path) -> str:
    """Return a hash of the code that a template's cells reach, and of what executes it."""
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    return _code_of_text("\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"))


@cache
def _code_of_text(text: str) -> str:
    return keys.joined(package_source().of_text(text), package_source().sha256("speclab.book.deterministic"))
