"""An arm as it was recorded: its cells, what is missing of them, and how they were made; nothing is started.

The records say which machine measured them. The machine that reads them has no part in what is read.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from speclab import lab as labs
from speclab import paths
from speclab.engines import EngineOptions
from speclab.engines.base import NOT_STARTED
from speclab.engines.secrets import is_named_secret
from speclab.errors import UserError
from speclab.record import store
from speclab.record.cell import Cell
from speclab.record.schema import CellRecord, CellSpec
from speclab.results.source import ResultSource, is_of, sources
from speclab.run.plan import ArmPlan, plan_arm

HIDDEN = "..."


def plan_kept(lab: str, arm: str, **given: Any) -> tuple[ArmPlan, ResultSource]:
    """Return the plan of an arm on the machine that the lab's results come from, and their source.

    Parameters
    ----------
    lab, arm : str
        Names of the lab and of one of its arms.
    **given
        `plan_arm`'s, but for ``options``.

    Raises
    ------
    UserError
        No cell of the lab is recorded, or what `plan_arm` raises.
    """
    engine = given.get("engine") or labs.load(lab).engine
    data = Path(given["out"]) if given.get("out") else paths.root() / "data"
    for source in sources(lab, engine, data=data):
        if (data / "runs" / source.machine / lab).is_dir():
            options = EngineOptions(base_url=None, device=source.machine.removeprefix(f"{engine}-"))
            return plan_arm(lab, arm, options=options, **given), source
    raise UserError(
        f"no records of {lab} on the engine {engine!r}",
        f"run `speclab run {lab} --engine {engine}`",
        file=data / "runs",
    )


def recorded(plan: ArmPlan) -> list[Cell]:
    """Return those of a plan's cells that are recorded, whatever became of them.

    Raises
    ------
    UserError
        A record is damaged.
    """
    folders = [plan.folder(asked) for asked in plan.cells]
    return [store.read(folder) for folder in folders if (folder / store.RECORD_FILE).is_file()]


def absent(plan: ArmPlan, records: Iterable[CellRecord], source: str) -> pd.DataFrame:
    """Return the cells of a plan that have no result from a source, or not the one that the lab's files ask for.

    Returns
    -------
    pd.DataFrame
        ``workload, concurrency, repeat, state``: the last in words.
    """
    there = {record.asked.cell: record for record in records}
    rows = [(asked, _state(asked, there.get(asked.cell), source)) for asked in plan.cells]
    return pd.DataFrame(
        [(asked.workload, asked.concurrency, asked.repeat, state) for asked, state in rows if state],
        columns=["workload", "concurrency", "repeat", "state"],
    )


def _state(asked: CellSpec, record: CellRecord | None, source: str) -> str | None:
    if record is None:
        return "not run"
    if not is_of(record.provenance.identity.source, source):
        return f"{record.provenance.identity.source}, not compared"
    if record.failure is not None:
        return f"failed: {record.failure.kind}: {record.failure.reason}"
    return None if record.asked_sha256 == asked.sha256 else "shown as it was asked for: the lab's files have changed"


def made(plan: ArmPlan, records: Sequence[CellRecord]) -> pd.DataFrame:
    """Return when and how an arm's cells were made, a row a fact: ``what, value``; no secrets.

    Of simulated cells that is what was assumed: when and where they were simulated decides nothing.
    """
    facts = _simulated(plan) if plan.engine == "simulated" else _measured(records)
    return pd.DataFrame([(what, value) for what, value in facts.items() if value], columns=["what", "value"])


def _simulated(plan: ArmPlan) -> dict[str, str]:
    asked = plan.cells[0]
    target, drafter = asked.simulated_target, plan.arm.simulated
    facts = {"device": asked.device, "target": target.shape if target else ""}
    if drafter is not None:
        facts |= {
            "drafter": drafter.shape or "no network",
            "time of a draft position, at least": f"{drafter.floor_ms_per_position:g} ms",
            "host time of a step": f"{drafter.host_ms_per_step:g} ms",
        }
    return facts | _load(asked)


def _measured(records: Sequence[CellRecord]) -> dict[str, str]:
    started = [record for record in records if record.provenance.identity.version != NOT_STARTED]
    if not started:
        return {}
    asked, commands = started[0].asked, {tuple(record.provenance.command or ()) for record in started}
    identity = started[0].provenance.identity
    return {
        "server": _each(started, lambda record: record.provenance.identity.version),
        "device": identity.device_name or identity.device,
        "processor": _each(started, lambda record: record.provenance.cpu),
        "platform": _each(started, lambda record: record.provenance.platform),
        "Python": _each(started, lambda record: record.provenance.python),
        "packages": _each(started, lambda record: _pairs(record.provenance.packages, " ")),
        "revision of this repository": _each(started, lambda record: record.provenance.git_revision or "not known"),
        "first cell began": min(record.provenance.started_at for record in started),
        "last cell ended": max(record.provenance.ended_at for record in started),
        "variables": _pairs(without_secrets(asked.environment), "="),
        "command": "; ".join(shlex.join(public(command)) for command in sorted(commands)),
        **_load(asked),
    }


def _load(asked: CellSpec) -> dict[str, str]:
    phases, sampling = asked.phases, asked.sampling
    dropped = f"{phases.drop_first_s:g} s at its start and {phases.drop_last_s:g} s at its end are dropped"
    return {
        "length of a cell": f"{phases.length_s:g} s, of which {dropped}",
        "sampling": f"temperature {sampling.temperature:g}, at most {sampling.max_tokens} tokens, seed {sampling.seed}",
    }


def _each(records: Iterable[CellRecord], fact: Callable[[CellRecord], str]) -> str:
    return "; ".join(sorted({fact(record) for record in records}))


def _pairs(mapping: dict[str, str], between: str) -> str:
    return ", ".join(f"{name}{between}{value}" for name, value in mapping.items())


def without_secrets(variables: dict[str, str]) -> dict[str, str]:
    """Return variables with the values of secret ones hidden."""
    return {name: HIDDEN if is_named_secret(name) else value for name, value in variables.items()}


def public(command: Sequence[str]) -> list[str]:
    """Return a command line with the values of secret flags hidden."""
    pairs = zip(["", *command[:-1]], command, strict=True)
    return [HIDDEN if flag.startswith("--") and is_named_secret(flag) else word for flag, word in pairs]
