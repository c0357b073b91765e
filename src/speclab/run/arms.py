"""Run arms of a lab: each missing cell in turn, recorded as it ends, then the arm's tables.

A cell that is finished is not run again.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from speclab import paths
from speclab.engines import choose, vllm_flags
from speclab.engines.base import Opening
from speclab.engines.secrets import is_named_secret
from speclab.errors import UserError
from speclab.findings.pairs import names_of
from speclab.lab import Arm, Lab
from speclab.record import lock, models, store
from speclab.record.cell import Cell
from speclab.record.schema import CellSpec
from speclab.results import lab_tables
from speclab.results.source import is_of, of_source
from speclab.run import session
from speclab.run.kept import absent, made, plan_kept, public, recorded, without_secrets
from speclab.run.plan import ArmPlan, plan_arm
from speclab.run.session import Progress

ArmStarting = Callable[[str, float, str | None], None]
"""Told an arm whose server starts, for how long it has, s, and the last line of its log; None once it has ended."""


@dataclass(frozen=True, slots=True)
class ArmRun:
    """One arm's cells after a run.

    Attributes
    ----------
    lab, arm
        What was run.
    tables : lab_tables.Tables
        The tables of the cells asked for; of kept cells, those of `source`.
    source : str
        The badge of every number of this run.
    ran, kept : int
        How many cells were run now, and how many were finished before.
    absent, made : pd.DataFrame
        What is missing, and how the cells were made (`speclab.run.kept`).
    """

    lab: Lab
    arm: Arm
    tables: lab_tables.Tables
    source: str
    ran: int
    kept: int
    absent: pd.DataFrame
    made: pd.DataFrame

    @property
    def failed(self) -> list[bool]:
        """Of each row of ``tables.cells``, whether the cell failed or did not pass its checks."""
        cells = self.tables.cells
        return [row["status"] == "failed" or bool(names_of(row["failed_checks"])) for row in cells.to_dict("records")]

    @property
    def not_passed(self) -> pd.DataFrame:
        """The checks that cells did not pass."""
        checks = self.tables.checks
        return checks[checks["verdict"] != "PASS"] if len(checks) else checks


def run(
    *plans: ArmPlan,
    repeat: int | None = None,
    progress: Progress | None = None,
    starting: ArmStarting | None = None,
    selftest: bool = True,
) -> int:
    """Run what is missing of a plan, of one repeat or of all; return how many cells were run.

    Of several plans of one lab the servers are up at the same time, and each cell is measured by every arm before the
    next one: where a machine's speed drifts, an arm and its baseline are then a cell apart.

    Before anything is measured the client's clean rate is (`speclab.load.selftest`), once on a machine, unless
    `selftest` is false; each record holds it.

    Raises
    ------
    UserError
        The engine lacks something that the lab does not hold, a folder cannot be written, another run is at work on
        one of these arms, or the cells there were measured with other weights.
    """
    _hold_models(plans)
    is_measured = any(plan.engine != "simulated" and plan.missing(repeat) for plan in plans)
    clean_rate_per_s = _clean_rate() if selftest and is_measured else None
    ran = 0
    with ExitStack() as locks:
        for plan in plans:
            if plan.missing(repeat):
                locks.enter_context(lock.held(_folder(plan)))
                store.clear(_folder(plan))
        for batch in _batches(plans, repeat):
            openings = {plan.arm.arm: _opening(plan, asked, starting) for plan, asked in reversed(batch)}
            cells = [asked for _, asked in batch]
            session.hold(openings, cells, plans[0].data / "runs", progress, clean_rate_per_s)
            ran += len(batch)
    if ran:
        _hold_models(plans)  # again: a model of the hub is here only now
    return ran


def _clean_rate() -> float | None:
    from speclab.load.selftest import kept_clean_rate  # draws in the endpoint's client, which a simulation needs not

    return kept_clean_rate()


def _folder(plan: ArmPlan) -> Path:
    return store.arm_folder(plan.data / "runs", plan.cells[0])


def _opening(plan: ArmPlan, asked: CellSpec, starting: ArmStarting | None) -> Opening:
    _refuse_secrets(plan)
    log_file = _folder(plan) / "server.log"
    tell = None if starting is None else partial(starting, plan.arm.arm)
    return choose(plan.engine, plan.lab, plan.arm, asked.workload, asked.repeat, plan.options, log_file, tell)


def _refuse_secrets(plan: ArmPlan) -> None:
    """Refuse a lab's secrets before they are in a record: what was asked for is kept whole."""
    flags = {name: value for name, value in vllm_flags.of(plan.lab, plan.arm).items() if isinstance(value, str)}
    for key, named in (("environment", plan.lab.environment), ("server", flags)):
        for name in filter(is_named_secret, named):
            raise UserError(
                "a secret would be in every record",
                "take it out: a server gets the variables of your shell, and ours asks for no key",
                file=paths.labs() / plan.lab.name,
                key=f"{key}.{name}",
            )


def server_command(plan: ArmPlan) -> str | None:
    """Return the command that starts an arm's server, as a shell takes it; None where this project starts none.

    The variables that the lab sets stand before it. Secrets are left out.
    """
    if plan.engine != "vllm":
        return None
    from speclab.engines import vllm

    words = [*(f"{name}={value}" for name, value in without_secrets(plan.lab.environment).items())]
    return shlex.join([*(["env", *words] if words else []), *public(vllm.command(plan.lab, plan.arm, 8000))])


def _batches(plans: Sequence[ArmPlan], repeat: int | None) -> list[list[tuple[ArmPlan, CellSpec]]]:
    """Group what is missing by the servers that can serve it, in the order in which it is run.

    Servers are started anew for each repeat; the simulator for each cell. Among the arms of one cell another begins
    each time, so that none is always the first.
    """
    missing = [(plan, asked) for plan in plans for asked in plan.missing(repeat)]
    if not missing:
        return []
    if plans[0].engine == "simulated":
        return [[pair] for pair in missing]
    if len(plans) == 1:
        return [missing]
    cells: dict[tuple[int, str, int], list[tuple[ArmPlan, CellSpec]]] = {}
    for plan, asked in missing:
        cells.setdefault((asked.repeat, asked.workload, asked.concurrency), []).append((plan, asked))
    batches: dict[int, list[tuple[ArmPlan, CellSpec]]] = {}
    for turn, ((of_repeat, _, _), arms) in enumerate(sorted(cells.items(), key=lambda item: item[0][0])):
        first = turn % len(arms)
        batches.setdefault(of_repeat, []).extend(arms[first:] + arms[:first])
    return list(batches.values())


def tables_of(plan: ArmPlan) -> lab_tables.Tables:
    """Return the tables of a plan's cells, all of which have been run, and keep them where the plan says so."""
    return _tables(plan, _cells(plan))


def _cells(plan: ArmPlan) -> list[Cell]:
    return [store.read(plan.folder(asked)) for asked in plan.cells]


def _tables(plan: ArmPlan, cells: Sequence[Cell]) -> lab_tables.Tables:
    tables = lab_tables.of(cells)
    if plan.keeps_tables and cells:
        machine = f"{plan.engine}-{plan.cells[0].device}"
        lab_tables.write(tables, lab_tables.folder(plan.data, plan.lab.name, machine), plan.arm.arm)
    return tables


def run_arm(
    lab: str, arm: str, *, kept: bool = False, progress: Progress | None = None, selftest: bool = True, **given: Any
) -> ArmRun:
    """Run what is missing of one arm, or with `kept` only read what was recorded, and return its tables.

    Parameters
    ----------
    lab, arm : str
        Names of the lab and of one of its arms.
    kept : bool
        Start nothing: take the arm's records, wherever they were measured.
    progress : Progress, optional
        Told how far it is.
    selftest : bool
        Measure first what this client sees cleanly (`run`).
    **given
        `plan_arm`'s.
    """
    if kept:
        return _kept(lab, arm, **given)
    plan = plan_arm(lab, arm, **given)
    ran = run(plan, progress=progress, selftest=selftest)
    cells = _cells(plan)
    tables, records = _tables(plan, cells), [cell.record for cell in cells]
    return ArmRun(
        plan.lab, plan.arm, tables, tables.source, ran=ran, kept=len(plan.cells) - ran,
        absent=absent(plan, records, tables.source), made=made(plan, records),
    )  # fmt: skip


def _kept(lab: str, arm: str, **given: Any) -> ArmRun:
    plan, source = plan_kept(lab, arm, **given)
    cells = recorded(plan)
    records = [cell.record for cell in cells]
    ours = [record for record in records if is_of(record.provenance.identity.source, source.source)]
    return ArmRun(
        plan.lab, plan.arm, of_source(_tables(plan, cells), source.source), source.source, ran=0, kept=len(ours),
        absent=absent(plan, records, source.source), made=made(plan, ours),
    )  # fmt: skip


def _hold_models(plans: Sequence[ArmPlan]) -> None:
    for plan in plans:
        if plan.engine == "vllm":
            drafter = plan.arm.speculation.model if plan.arm.speculation else None
            named = [model for model in (plan.lab.target.model, drafter) if model is not None]
            models.hold(_folder(plan).parent, named)
