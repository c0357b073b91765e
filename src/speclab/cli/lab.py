"""The commands that run a lab: ``speclab labs`` and ``speclab run``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from speclab import lab as labs
from speclab import paths
from speclab.cli.options import EngineOption, LabName, ListOption, err, split, whole_numbers
from speclab.errors import UserError


def list_labs() -> None:
    """List the labs and their arms."""
    table = Table("lab", "engine", "arms", "workloads", "in flight", "cells", box=None, header_style="bold")
    for name in labs.names():
        lab = labs.load(name)
        cells = sum(len(lab.grid(lab.arm(arm))) for arm in lab.arms)
        in_flight = ", ".join(map(str, lab.concurrencies))
        table.add_row(name, lab.engine, ", ".join(lab.arms), ", ".join(lab.workloads), in_flight, str(cells))
    Console().print(table)


def run_lab(
    lab: LabName,
    engine: EngineOption = None,
    arms: ListOption = None,
    workloads: ListOption = None,
    concurrencies: ListOption = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Runs of each cell; the arm's or lab's by default.")
    ] = None,
    length_s: Annotated[float | None, typer.Option(help="Length of a cell, s; the lab's by default.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Address of a server that is up (engine endpoint).")] = None,
    device: Annotated[str | None, typer.Option(help="Name of the device, for the records' path.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for runs/ and derived/; data/, or .build/trials/ for other values.")
    ] = None,
    selftest: Annotated[
        bool, typer.Option("--selftest/--no-selftest", help="Measure what this client sees cleanly, once a machine.")
    ] = True,
    plan: Annotated[Path | None, typer.Option(help="A plan that `speclab plan` wrote: its cells and phases.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be run, and for how long.")] = False,
) -> None:
    """Run what is missing of a lab, arms in turn within each repeat; finished cells are kept.

    A cell that fails is recorded with its reason and the rest goes on. Ctrl-C keeps what is finished. A cell that ran
    and does not pass its checks is named at the end. Exit code 1 where a cell failed; of checks, `speclab check` says.
    """
    import pandas as pd

    from speclab import run as runs
    from speclab.budget import run_plan
    from speclab.cli import progress, tables
    from speclab.engines import EngineOptions
    from speclab.findings import between
    from speclab.run.arms import server_command
    from speclab.run.plan import plan_arm

    loaded = labs.load(lab)
    chosen = split(arms)
    if (engine or loaded.engine) == "endpoint" and len(chosen or ()) != 1:
        found = f"found {arms!r}" if arms else "not given"
        raise UserError(found, "one server serves one arm: name exactly the one that it serves", key="--arms")
    options = EngineOptions(device=device) if base_url is None else EngineOptions(base_url=base_url, device=device)
    planned = None if plan is None else run_plan.read(plan, loaded)
    if planned is not None and chosen is None:
        chosen = [arm for arm in loaded.arms if planned.phases(arm)]
    phases = None if length_s is None else loaded.phases.model_dump() | {"length_s": length_s}
    plans = [
        plan_arm(
            lab, arm, engine=engine, workloads=split(workloads), concurrencies=whole_numbers(concurrencies),
            repeats=repeats, out=out, phases=phases, options=options, planned=planned,
        )
        for arm in chosen or loaded.arms
    ]  # fmt: skip
    if dry_run:
        console = Console()
        console.print(progress.overview(plans))
        for command in filter(None, map(server_command, plans)):
            console.print(f"\n{command}", highlight=False, markup=False, soft_wrap=True)
        return
    if selftest and any(plan.engine != "simulated" and plan.missing() for plan in plans):
        from speclab.load.selftest import kept_clean_rate

        with err.status("measuring how many events a second this client sees as they are sent"):
            kept_clean_rate()
    with progress.Bar(plans, err) as bar:
        of_arms = runs.run_lab(plans, progress=bar.advance, starting=bar.starting, selftest=selftest)
    stacked = (pd.concat([getattr(tables_of, kind) for tables_of in of_arms]) for kind in ("cells", "answers"))
    cells = between.judged(*(table.reset_index(drop=True) for table in stacked))
    failed, failing = int((cells["status"] == "failed").sum()), tables.failed_checks(cells)
    unsound = int(cells["failed_checks"].notna().sum())
    counts = f"{bar.ran} cells run, {bar.kept} kept, {failed} failed"
    err.print(f"{counts}, {unsound} with checks that FAIL" if unsound else counts, highlight=False)
    trials = {paths.shown(plan.data) for plan in plans if plan.is_trial and out is None}
    for folder in trials:
        err.print(f"not as the lab's files say, so kept apart: speclab show {lab} --data {folder}", highlight=False)
    keeps_tables = all(plan.keeps_tables for plan in plans)
    if not keeps_tables:
        remedy = "give --out to keep these and show them"
        err.print(f"data/derived is as it was: it holds whole arms as their files say; {remedy}", highlight=False)
    for line in [*tables.failures(cells), *failing]:
        err.print(line, style="yellow", highlight=False, markup=False, soft_wrap=True)
    if failed:
        err.print("each failed record says why; a second run tries them again", style="yellow")
    if failing:
        where = "" if out is None else f" --data {paths.shown(out)}"
        where = next((f" --data {folder}" for folder in trials), where)
        known = "" if engine is None else f" --engine {engine}"
        err.print(f"what to do about each check: speclab check {lab}{known}{where}", style="yellow", highlight=False,
                  soft_wrap=True)  # fmt: skip
    if failed:
        raise typer.Exit(1)
