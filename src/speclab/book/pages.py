"""Which notebook page of the book is made from what: template, parameters, inputs and outputs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from speclab import derived, paths
from speclab import lab as labs
from speclab.validation import read_yaml

QUESTIONS = (
    "method",
    "speed_up",
    "acceptance",
    "milliseconds",
    "ngram",
    "revision",
    "spare_compute",
    "conclusions",
)
"""Templates that every lab is asked with, in the order of the chapters."""

ANALYSES = (
    *((template, "lab09") for template in (*QUESTIONS, "published", "coverage")),
    *((template, "cpu-smollm2") for template in (*QUESTIONS, "text", "drafters", "provenance")),
)
"""The analysis pages, by template and lab. The engine is the lab's own."""

CHAPTER10: dict[str, dict[str, Any]] = {
    "mechanism": {"variant": "gamma-3-alpha-0.7"},
    "devices": {"context": 512},
    "closed_forms": {},
    "workloads": {},
    "explorer": {"workload": "chat"},
    "caveats": {},
}
"""The pages of the part "Why", by template in ``notebooks/chapter10/``, and the parameters of each."""

MODEL: dict[str, dict[str, Any]] = {
    "calibration": {"report_name": "lab09"},
    "parameters": {"name": "lab09", "arm": "eagle3-k3", "workload": "chat"},
    "map": {"drafting_ms": 0.37, "context": 500, "concurrency": 64},
}
"""The pages of the calibrated model, by template in ``notebooks/model/``, and the parameters of each; they read what is
published and measured."""

WIDGETS = ("mechanism", "explorer", "map")
"""Those of both that leave an interactive part: ``chapter10_<template>.html`` or ``model_<template>.html``."""

# Code that has no say in what a notebook shows
_NOT_IN_NOTEBOOKS = (
    "book/build.py",
    "book/kernel.py",
    "book/listing.py",
    "book/mathml.py",
    "book/pages.py",
    "book/sphinx_ext.py",
    "cli/",
    "doctor/",
    "drafters/",
)


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
        Files that decide its content, the code apart, and the files it leaves.
    command : str
        The same by hand, from the checkout's root.
    """

    name: str
    template: Path
    parameters: dict[str, Any]
    inputs: tuple[Path, ...]
    outputs: tuple[Path, ...]
    command: str
    needs_runs: bool = field(default=False)
    """Whether it reads the derived tables, and so waits for the run pages."""

    @property
    def notebook(self) -> Path:
        """The executed notebook."""
        return paths.book() / f"{self.name}.ipynb"


def runs() -> list[Page]:
    """Return the run pages: one for each arm of each lab that the simulator runs."""
    return [
        _run(lab, arm)
        for name in labs.names()
        for lab in [labs.load(name)]
        if lab.engine == "simulated"
        for arm in lab.arms
    ]


def analyses() -> list[Page]:
    """Return the analysis pages, in the order of the chapters they belong to."""
    return [
        *(_analysis(*row) for row in ANALYSES),
        *(_chapter10(*row) for row in CHAPTER10.items()),
        *(_model(*row) for row in MODEL.items()),
    ]


def stamp(page: Page) -> str:
    """Return a hash of everything that decides a page's content."""
    parameters = repr(sorted(page.parameters.items()))
    files = [page.template, *page.inputs, paths.root() / "constraints.txt"]
    return _hash(files, parameters.encode() + _code().encode())


def left(page: Page) -> str:
    """Return a hash of what a page has left; an edit by hand or a checkout of another version changes it."""
    return _hash([page.notebook, *page.outputs])


def drawn() -> str:
    """Return a hash of all figures, tables and pieces of HTML that the analyses keep for the chapters."""
    return _hash(file for folder in ("figures", "tables", "widgets") for file in (paths.book() / folder).glob("*.*"))


def _run(lab: labs.Lab, arm: str) -> Page:
    file = paths.labs() / lab.name / f"{arm}.yml"
    machine = f"{lab.engine}-{lab.simulated.device}" if lab.simulated else f"{lab.engine}-*"
    name = f"runs/{lab.name}/{arm}"
    return Page(
        name=name,
        template=_template("run_arm"),
        parameters=read_yaml(file),
        inputs=(paths.labs() / lab.name / "lab.yml", file),
        outputs=tuple(paths.derived() / lab.name / machine / f"{arm}.{kind}.csv" for kind in derived.KINDS),
        command=_papermill("run_arm", name) + f" -f {paths.shown(file)}",
    )


def _analysis(template: str, lab: str) -> Page:
    name = f"analysis/{lab}/{template}"
    engine = labs.load(lab).engine
    tables = (paths.derived() / lab).glob(f"{engine}-*/*.csv")
    # a simulated record is made again with its tables; a measured one is evidence of its own, and so is a probe
    evidence = () if engine == "simulated" else (f"{engine}-*/{lab}/**/*.json", "probe-*/*/*.json")
    records = [file for pattern in evidence for file in paths.runs().glob(pattern)]
    return Page(
        name=name,
        template=_template(template),
        parameters={"lab": lab, "engine": engine},
        inputs=(
            *sorted((paths.labs() / lab).glob("*.yml")),
            *sorted(tables),
            *sorted(records),
            *sorted(paths.published().glob("*.csv")),
            *sorted(paths.coverage().glob("*.csv")),
            *sorted(paths.drafters().glob("*/*.csv")),
        ),
        outputs=(),
        command=_papermill(template, name) + f" -p lab {lab} -p engine {engine}",
        needs_runs=True,
    )


def _chapter10(template: str, parameters: dict[str, Any]) -> Page:
    name = f"analysis/chapter10/{template}"
    return Page(
        name=name,
        template=_template(f"chapter10/{template}"),
        parameters=parameters,
        inputs=tuple(sorted((paths.derived() / "chapter10").glob("*.csv"))),
        outputs=_widget(f"chapter10_{template}") if template in WIDGETS else (),
        command=_papermill(f"chapter10/{template}", name) + _given(parameters),
    )


def _model(template: str, parameters: dict[str, Any]) -> Page:
    name = f"analysis/model/{template}"
    tables = (paths.derived() / "cpu-smollm2").glob("*/*.csv")
    return Page(
        name=name,
        template=_template(f"model/{template}"),
        parameters=parameters,
        inputs=(
            *sorted(paths.labs().glob("*/*.yml")),
            *sorted(tables),
            *sorted(paths.published().glob("*.csv")),
        ),
        outputs=_widget(f"model_{template}") if template in WIDGETS else (),
        command=_papermill(f"model/{template}", name) + _given(parameters),
        needs_runs=True,
    )


def _widget(name: str) -> tuple[Path, ...]:
    return (paths.book() / "widgets" / f"{name}.html",)


def _papermill(template: str, name: str) -> str:
    return f"papermill --engine speclab notebooks/{template}.ipynb book/{name}.ipynb"


def _given(parameters: dict[str, Any]) -> str:
    return "".join(f" -p {key} {value}" for key, value in parameters.items())


def _template(name: str) -> Path:
    return paths.root() / "notebooks" / f"{name}.ipynb"


@cache
def _code() -> str:
    """Return a hash of the code that notebooks run, as it was when this process first asked: the same for all pages."""
    source = Path(__file__).parents[1]
    inside = {file: file.relative_to(source).as_posix() for file in source.rglob("*") if file.is_file()}
    return _hash(
        file for file, name in inside.items() if "__pycache__" not in name and not name.startswith(_NOT_IN_NOTEBOOKS)
    )


def _hash(files: Iterable[Path], extra: bytes = b"") -> str:
    digest = hashlib.sha256(extra)
    for file in sorted(files):
        digest.update(f"\0{paths.shown(file)}\0".encode())
        digest.update(file.read_bytes() if file.is_file() else b"\0missing")
    return digest.hexdigest()
