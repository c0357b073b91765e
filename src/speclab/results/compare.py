"""Two runs found on disk and compared: what changed between them, and what came of it.

A run is a folder: a data folder (``data/``, ``.build/trials``, what ``--out`` named) that holds the tables of one lab
and device, or one lab's and device's folder of tables inside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from speclab import paths
from speclab.errors import UserError
from speclab.findings.compare import CHANCE, HIGHER, LOWER, NOISE, ONLY_A, ONLY_B, compared
from speclab.record import store
from speclab.record.schema import CellRecord
from speclab.results import lab_tables, strict_json

EACH_CELLS_OWN = {"arm", "workload", "concurrency", "repeat", "lab"}
"""What places a cell; the same in both runs where it is compared."""

NOT_SAID = "not said"


@dataclass(frozen=True)
class Run:
    """One run as it lies on disk.

    Attributes
    ----------
    folder : Path
        Its folder of tables.
    lab : str
        Name of the lab.
    tables : lab_tables.Tables
        What it came to.
    records : tuple of CellRecord
        Its cells' records, where they lie beside the tables; a simulated lab's are not kept.
    """

    folder: Path
    lab: str
    tables: lab_tables.Tables
    records: tuple[CellRecord, ...]


@dataclass(frozen=True)
class Comparison:
    """The second run against the first.

    Attributes
    ----------
    a, b : Run
        The two.
    changed : pd.DataFrame
        ``what, arms, a, b``: everything that was asked or used and is not the same in both.
    cells, overall : pd.DataFrame
        As `speclab.findings.compare.compared` returns them.
    """

    a: Run
    b: Run
    changed: pd.DataFrame
    cells: pd.DataFrame
    overall: pd.DataFrame

    def counted(self, finding: str) -> dict[str, int]:
        """Return how many cells of a finding have each status."""
        of = self.cells[self.cells["finding"] == finding]
        return {str(status): int(count) for status, count in of["status"].value_counts(sort=False).items()}

    @property
    def notes(self) -> list[str]:
        """What to know before reading it."""
        notes = []
        resolved = self.cells[self.cells["status"].isin([HIGHER, LOWER, NOISE])]
        in_one = resolved[resolved["finding"] == "system_throughput"]
        if len(in_one):
            by_chance = CHANCE * len(in_one)
            notes.append(
                f"of {len(in_one)} cells without any difference about {by_chance:.1f} would lie beyond a 95% interval "
                "by chance: read the arms as a whole first"
            )
        if len(resolved) and resolved["repeats"].min() < 2:
            notes.append(
                "a cell that ran once knows nothing of what is slower than its window: a machine that was slower for "
                "some minutes looks like a difference here; run each cell more than once"
            )
        if not self.a.records or not self.b.records:
            notes.append(
                "records do not lie beside the tables of both runs, so what changed is known from the tables alone"
            )
        return notes


def compare(a: Path, b: Path, *, lab: str | None = None, engine: str | None = None) -> Comparison:
    """Return the run in folder `b` against the run in folder `a`.

    Raises
    ------
    UserError
        A folder holds no run, or several; both are the same; they are of different labs, or share no cell.
    """
    first, second = find(a, lab, engine), find(b, lab, engine)
    if first.folder.resolve() == second.folder.resolve():
        raise UserError("both runs are the same folder", "name two", file=first.folder)
    if first.lab != second.lab:
        problem = f"{paths.shown(a)} holds {first.lab} and {paths.shown(b)} holds {second.lab}"
        raise UserError(f"nothing to compare: {problem}", "name two runs of one lab")
    cells, overall = compared(first.tables.cells, first.tables.blocks, second.tables.cells, second.tables.blocks)
    if cells["status"].isin([ONLY_A, ONLY_B]).all():
        arms = [", ".join(sorted(run.tables.cells["arm"].unique())) for run in (first, second)]
        raise UserError(
            f"nothing to compare: no arm at the same workload and concurrency in both ({arms[0]}; {arms[1]})",
            "run the same arms, workloads and concurrencies in both",
        )
    return Comparison(first, second, changes(first, second), cells, overall)


def find(folder: Path, lab: str | None = None, engine: str | None = None) -> Run:
    """Return the one run that a folder holds.

    Raises
    ------
    UserError
        It holds none, or more than one (the candidates are named).
    """
    if not folder.is_dir():
        raise UserError("no such folder", "name a data folder, or a folder of tables inside one", file=folder)
    where = [folder] if any(folder.glob("*.cells.csv")) else sorted(
        path for path in (folder / "derived").glob("*/*") if any(path.glob("*.cells.csv"))
    )  # fmt: skip
    there = [path for path in where if lab in (None, path.parent.name) and path.name.startswith(engine or "")]
    if len(there) != 1:
        runs_there = ", ".join(f"{path.parent.name} on {path.name}" for path in where) or "none"
        remedy = "choose with --lab and --engine, or name its folder" if where else "run a lab with `--out` there"
        raise UserError(f"one run is needed, found: {runs_there}", remedy, file=folder)
    tables, name = there[0], there[0].parent.name
    runs = tables.parents[2] / "runs" / tables.name / name
    records = tuple(store.read_record(file.parent) for file in sorted(runs.glob(f"*/[!.]*/{store.RECORD_FILE}")))
    arms = sorted(file.name.removesuffix(".cells.csv") for file in tables.glob("*.cells.csv"))
    return Run(tables, name, lab_tables.read_folder(tables, arms), records)


def changes(a: Run, b: Run) -> pd.DataFrame:
    """Return what is not the same in two runs, `what, arms, a, b`; what all arms share is said once."""
    rows: list[dict[str, object]] = []
    arms = [sorted(run.tables.cells["arm"].unique()) for run in (a, b)]
    for arm in sorted({*arms[0], *arms[1]}):
        if not all(arm in of_run for of_run in arms):
            rows.append({"what": "arm", "arms": arm, "a": _there(arm in arms[0]), "b": _there(arm in arms[1])})
    by_records = bool(a.records and b.records)
    cells = {_place(record) for record in a.records} & {_place(record) for record in b.records}
    facts = [_by_records(run, cells) if by_records else _by_tables(run) for run in (a, b)]
    shared = [arm for arm in facts[0] if arm in facts[1]]
    differing: dict[tuple[str, str, str], list[str]] = {}
    for arm in shared:
        for what in dict.fromkeys([*facts[0][arm], *facts[1][arm]]):
            one, other = (of_run[arm].get(what, NOT_SAID) for of_run in facts)
            if one != other:
                differing.setdefault((what, one, other), []).append(arm)
    for (what, one, other), named in differing.items():
        which = "all" if len(named) == len(shared) else ", ".join(named)
        rows.append({"what": what, "arms": which, "a": one, "b": other})
    return pd.DataFrame(rows, columns=["what", "arms", "a", "b"])


def to_json(comparison: Comparison) -> str:
    """Return a comparison as one JSON object; null where there is no value."""
    content = {
        "a": {"folder": paths.shown(comparison.a.folder), "source": comparison.a.tables.source},
        "b": {"folder": paths.shown(comparison.b.folder), "source": comparison.b.tables.source},
        "lab": comparison.a.lab,
        "changed": comparison.changed.to_dict("records"),
        "overall": strict_json.rows(comparison.overall),
        "cells": strict_json.rows(comparison.cells),
        "notes": comparison.notes,
    }
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)


def _there(is_there: bool) -> str:
    return "there" if is_there else "not there"


def _place(record: CellRecord) -> tuple[str, str, int]:
    return record.asked.arm, record.asked.workload, record.asked.concurrency


def _by_records(run: Run, cells: set[tuple[str, str, int]]) -> dict[str, dict[str, str]]:
    """Return everything that was asked and used for some cells, by arm: flat names, all values of an arm's cells."""
    by_arm: dict[str, dict[str, dict[str, None]]] = {}
    for record in run.records:
        for name, value in _said(record) if _place(record) in cells else ():
            by_arm.setdefault(record.asked.arm, {}).setdefault(name, {})[value] = None
    return {arm: {name: " and ".join(values) for name, values in facts.items()} for arm, facts in by_arm.items()}


def _by_tables(run: Run) -> dict[str, dict[str, str]]:
    """Return what the tables know of what was asked: the source, and a hash of all that arms share."""
    known = [name for name in ("source", "conditions") if name in run.tables.cells]
    return {
        str(arm): {name: " and ".join(sorted(map(str, cells[name].dropna().unique()))) for name in known}
        for arm, cells in run.tables.cells.groupby("arm", sort=False)
    }


def _said(record: CellRecord) -> Iterator[tuple[str, str]]:
    asked, made = record.asked.model_dump(mode="json"), record.provenance
    for name, value in _flat(asked, ()):
        if name.split(".")[0] in EACH_CELLS_OWN:
            continue
        yield (f"prompts of {record.asked.workload}" if name == "prompts_sha256" else name), value
    yield "engine version", made.identity.version
    yield "revision", made.git_revision or NOT_SAID
    yield from (("Python", made.python), ("platform", made.platform), ("processor", made.cpu))
    yield from ((f"package {name}", version) for name, version in made.packages.items())


def _flat(value: object, path: Sequence[str]) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flat(inner, [*path, str(key)])
    elif value is not None:
        yield ".".join(path), value if isinstance(value, str) else json.dumps(value)
