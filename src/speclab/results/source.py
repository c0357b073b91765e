"""Where a lab's results come from: one engine in one version on one device, and what lies beside it.

A lab's results are those of one source. Cells of two machines, or of two versions of a server, are never held against
each other: what the difference between them is, no cell says.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from speclab import lab as labs
from speclab import paths
from speclab.engines.base import NOT_STARTED
from speclab.errors import UserError
from speclab.lab import BASELINE, Lab
from speclab.record import store
from speclab.results import lab_tables
from speclab.results.lab_tables import Tables

_MEASURED = re.compile(r"measured \((?P<version>.+), (?P<device>[^,]+)\)")


@dataclass(frozen=True, slots=True)
class ResultSource:
    """One engine, version and device that some of a lab's cells come from.

    Attributes
    ----------
    source : str
        The badge.
    engine, machine : str
        The engine, and ``<engine>-<device>`` as in the records' path.
    version, device : str
        As the badge names them; no version where the engine is simulated.
    finished, recorded : dict of str to int
        Cells by arm: those that were measured to their end, and all that were tried.
    repeats : int
        The most repeats of a finished cell.
    measured_at : str
        When the latest cell began, ISO 8601; empty where only tables are here.
    """

    source: str
    engine: str
    machine: str
    version: str
    device: str
    finished: dict[str, int] = field(default_factory=dict)
    recorded: dict[str, int] = field(default_factory=dict)
    repeats: int = 0
    measured_at: str = ""

    @property
    def cells(self) -> int:
        """Finished cells of all arms."""
        return sum(self.finished.values())


def sources(lab: str, engine: str | None = None, *, data: Path | None = None) -> list[ResultSource]:
    """Return where the cells of a lab come from, the source of the lab's results first.

    That is the one with most finished cells; the latest of several. Cells are counted from the records of a machine, or
    from its tables where no records are kept. Those of a server that did not start have no version, and count for the
    source that stands first on their machine.

    Raises
    ------
    UserError
        The lab is unknown, or a record or table is damaged.
    """
    loaded = labs.load(lab)
    engine, data = engine or loaded.engine, data or paths.root() / "data"
    made: list[ResultSource] = []
    for machine in machines(lab, engine, data):
        # simulated records are made again at will, and not kept: their tables say what there is
        recorded = [] if engine == "simulated" else _recorded(data / "runs" / machine / lab, loaded.arms)
        rows = pd.DataFrame(recorded, columns=_COLUMNS)
        if rows.empty:
            cells = lab_tables.read_folder(lab_tables.folder(data, lab, machine), loaded.arms).cells
            rows = cells.reindex(columns=_COLUMNS).assign(began="")
        ranked = sorted((_source(engine, machine, part) for _, part in rows.groupby("source")), key=_rank, reverse=True)
        known = [each for each in ranked if each.version != NOT_STARTED]
        made += [_with_unstarted(known, ranked), *known[1:]] if known else ranked
    return sorted(made, key=_rank, reverse=True)


def machines(lab: str, engine: str, data: Path) -> list[str]:
    """Return the machines with records or tables of a lab, as in the records' path."""
    recorded = {file.parents[3].name for file in (data / "runs").glob(f"{engine}-*/{lab}/*/*/{store.RECORD_FILE}")}
    tables = {file.parent.name for file in (data / "derived" / lab).glob(f"{engine}-*/*.cells.csv")}
    return sorted(recorded | tables)


def read(lab: str, engine: str | None = None, *, data: Path | None = None) -> Tables:
    """Return the tables of all arms of a lab that have been run, of the first of its sources that has tables.

    Parameters
    ----------
    lab : str
        Name of the lab.
    engine : str, optional
        Engine whose tables are wanted; the lab's own where not given.
    data : Path, optional
        Another data folder than the checkout's.

    Raises
    ------
    UserError
        Nothing has been run on that engine, or a table is damaged.
    """
    loaded = labs.load(lab)
    engine, data = engine or loaded.engine, data or paths.root() / "data"
    where = lab_tables.folder(data, lab, "x").parent
    there = sorted(path.name for path in where.glob("*") if any(path.glob("*.cells.csv")))
    of_engine = [name for name in there if name.startswith(f"{engine}-")]
    if not of_engine:
        raise UserError(
            f"no results of {lab} on the engine {engine!r}",
            f"run `speclab run {lab} --engine {engine}`" + (f", or choose from {', '.join(there)}" if there else ""),
            file=where,
        )
    tables = {name: lab_tables.read_folder(where / name, loaded.arms) for name in of_engine}
    for source in sources(lab, engine, data=data):
        if source.machine in tables:
            cut = of_source(tables[source.machine], source.source)
            if len(cut.cells):
                return cut
    return tables[of_engine[0]]


def of_source(tables: Tables, source: str) -> Tables:
    """Return the rows of one source, cells of servers that did not start among them (they have no version)."""
    badges = set(tables.cells["source"]) if len(tables.cells) else {source}
    if badges == {source}:
        return tables
    ours = [badge for badge in badges if is_of(badge, source)]
    return Tables(**{kind: _cut(getattr(tables, kind), ours, source) for kind in lab_tables.KINDS})


def is_of(badge: str, source: str) -> bool:
    """Return whether a cell's badge is that of a source, or of a server that did not start."""
    match = _MEASURED.fullmatch(badge)
    return badge == source or (match is not None and match["version"] == NOT_STARTED)


def _cut(rows: pd.DataFrame, badges: Sequence[str], source: str) -> pd.DataFrame:
    if rows.empty:
        return rows
    return rows[rows["source"].isin(badges)].assign(source=source).reset_index(drop=True)


def problems(lab: str, engine: str | None = None, *, data: Path | None = None) -> list[str]:
    """Return what a reader must know about where a lab's results come from, a sentence each.

    Raises
    ------
    UserError
        As for `sources`.
    """
    found = sources(lab, engine, data=data)
    if not found:
        return []  # nothing was run: `read` says so
    shown, *others = found
    return [*_beside(shown, others), *_missing(labs.load(lab), shown, is_alone=not others)]


def _beside(shown: ResultSource, others: Sequence[ResultSource]) -> Iterator[str]:
    elsewhere = [each for each in others if each.machine != shown.machine]
    here = [each for each in others if each.machine == shown.machine]
    if elsewhere:
        counts: Counter[str] = Counter()
        for each in elsewhere:
            counts[each.device] += each.cells
        yield _of_several(f"{1 + len(counts)} machines", (shown.device, shown.cells), counts.items())
    if here:
        versions = [(each.version, each.cells) for each in here]
        what = f"{1 + len(here)} versions of the server on {shown.device}"
        yield _of_several(what, (shown.version, shown.cells), versions)


def _of_several(what: str, shown: tuple[str, int], others: Iterable[tuple[str, int]]) -> str:
    ours, *theirs = (f"{name} ({_cells(count)})" for name, count in (shown, *others))
    return f"Records of {what}: those of {ours} are shown, those of {', '.join(theirs)} are not compared with them."


def _missing(lab: Lab, shown: ResultSource, *, is_alone: bool) -> Iterator[str]:
    there = "" if is_alone else f" with {shown.version} on {shown.device}"
    for arm in lab.arms:
        recorded, total = shown.recorded.get(arm, 0), len(lab.grid(lab.arm(arm)))
        if recorded == 0 and arm == BASELINE:
            yield f"The baseline was not run{there}: no speed-up can be computed."
        elif recorded == 0:
            yield f"The arm {arm} was not run{there}: nothing is said of it."
        elif recorded < total:
            yield f"{total - recorded} of {_cells(total)} of the arm {arm} are missing{there}."


def _cells(count: int) -> str:
    return f"{count} cell{'' if count == 1 else 's'}"


_COLUMNS = ["source", "arm", "status", "repeat", "began"]


def _recorded(folder: Path, arms: Sequence[str]) -> Iterator[tuple[str, str, str, int, str]]:
    for arm in arms:
        for file in sorted((folder / arm).glob(f"[!.]*/{store.RECORD_FILE}")):
            record = store.read_record(file.parent)
            made = record.provenance
            yield made.identity.source, arm, record.status, record.asked.repeat, made.started_at


def _source(engine: str, machine: str, rows: pd.DataFrame) -> ResultSource:
    badge = str(rows["source"].iloc[0])
    match = _MEASURED.fullmatch(badge)
    finished = rows[rows["status"] == "ok"]
    return ResultSource(
        source=badge,
        engine=engine,
        machine=machine,
        version=match["version"] if match else "",
        device=match["device"] if match else machine.removeprefix(f"{engine}-"),
        finished={str(arm): int(count) for arm, count in finished["arm"].value_counts().items()},
        recorded={str(arm): int(count) for arm, count in rows["arm"].value_counts().items()},
        repeats=int(finished["repeat"].nunique()),
        measured_at=str(rows["began"].max()),
    )


def _with_unstarted(known: Sequence[ResultSource], ranked: Sequence[ResultSource]) -> ResultSource:
    """Return the first of the known sources of a machine, with the cells of servers that did not start."""
    tried: Counter[str] = Counter(known[0].recorded)
    for each in ranked:
        if each.version == NOT_STARTED:
            tried.update(each.recorded)
    return replace(known[0], recorded=dict(tried))


def _rank(source: ResultSource) -> tuple[int, str, str]:
    return source.cells, source.measured_at, source.source
