"""A pilot from what is kept of a lab: its tables, and what its records say of servers' starts and pauses."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from statistics import median

from speclab import paths, prompts
from speclab.budget.estimate import pilot
from speclab.budget.pilot import Pilot
from speclab.lab import Lab
from speclab.record import store
from speclab.record.schema import CellRecord
from speclab.results import Results, sources
from speclab.results.source import is_of

LONGEST_START_S = 900.0
"""A longer gap between two cells is an interruption, not a server's start."""


def of(results: Results, engine: str | None, data: Path | None, prompts_of_each: int | None = None) -> Pilot:
    """Return a lab's results as a pilot.

    Parameters
    ----------
    results : Results
        The lab's.
    engine, data
        As they were read (`speclab.results.of`).
    prompts_of_each : int, optional
        Plan as if each workload had so many prompts; those of the lab where not given.

    Raises
    ------
    UserError
        As `speclab.budget.estimate.pilot`; or a record is damaged.
    """
    lab, tables = results.lab, results.tables
    counts = prompt_counts(lab, prompts_of_each)
    start_s, pause_s = costs(_records(results, engine, data))
    return pilot(tables.cells, tables.blocks, tables.answers, counts, lab.phases, start_s=start_s, pause_s=pause_s)


def prompt_counts(lab: Lab, of_each: int | None = None) -> dict[str, int]:
    """Return how many prompts each workload of a lab has, or that it is taken to have."""
    return {name: of_each or len(prompts.load(name, lab.sampling.seed).measured) for name in lab.workloads}


def _records(results: Results, engine: str | None, data: Path | None) -> list[CellRecord]:
    """Return the records of the results' source; none of a simulated lab, whose clock is its own."""
    name, runs = results.lab.name, (data or paths.root() / "data") / "runs"
    shown = next((each for each in sources(name, engine, data=data) if each.source == results.source), None)
    if shown is None or shown.engine == "simulated":
        return []
    files = sorted((runs / shown.machine / name).glob(f"*/[!.]*/{store.RECORD_FILE}"))
    records = [store.read_record(file.parent) for file in files]
    return [record for record in records if is_of(record.provenance.identity.source, shown.source)]


def costs(records: Sequence[CellRecord]) -> tuple[float, float]:
    """Return what a server took to start and what a cell took beside its length, s; 0 where records do not say.

    A server is started before its arm's first cell of a repeat, so the gap before that cell is its start.
    """
    gaps: dict[bool, list[float]] = {True: [], False: []}
    begun: set[tuple[str, int]] = set()
    ended: datetime | None = None
    for record in sorted(records, key=lambda each: each.provenance.started_at):
        made, asked = record.provenance, record.asked
        starts, ends = datetime.fromisoformat(made.started_at), datetime.fromisoformat(made.ended_at)
        is_first = (asked.arm, asked.repeat) not in begun
        begun.add((asked.arm, asked.repeat))
        over_s = max(0.0, (ends - starts).total_seconds() - asked.phases.length_s)
        if ended is not None and 0 <= (gap_s := (starts - ended).total_seconds()) < LONGEST_START_S:
            gaps[is_first].append(gap_s + (0.0 if is_first else over_s))
        ended = ends
    return (median(gaps[True]) if gaps[True] else 0.0), (median(gaps[False]) if gaps[False] else 0.0)
