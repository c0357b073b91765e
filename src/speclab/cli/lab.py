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
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be run, and for how long.")] = False,
) -> None:
    """Run what is missing of a lab, arms in turn within each repeat; finished cells are kept.

    A cell that fails is recorded with its reason and the rest goes on. Ctrl-C keeps what is finished.
    """
    import pandas as pd

    from speclab import run as runs
    from speclab.cli import progress, tables
    from speclab.engines import EngineOptions
    from speclab.run.plan import plan_arm

    loaded = labs.load(lab)
    chosen = split(arms)
    if (engine or loaded.engine) == "endpoint" and len(chosen or ()) != 1:
        found = f"found {arms!r}" if arms else "not given"
        raise UserError(found, "one server serves one arm: name exactly the one that it serves", key="--arms")
    options = EngineOptions(device=device) if base_url is None else EngineOptions(base_url=base_url, device=device)
    phases = None if length_s is None else loaded.phases.model_dump() | {"length_s": length_s}
    plans = [
        plan_arm(
            lab, arm, engine=engine, workloads=split(workloads), concurrencies=whole_numbers(concurrencies),
            repeats=repeats, out=out, phases=phases, options=options,
        )
        for arm in chosen or loaded.arms
    ]  # fmt: skip
    if dry_run:
        Console().print(progress.overview(plans))
        return
    with progress.Bar(plans, err) as bar:
        of_arms = runs.run_lab(plans, progress=bar.advance)
    cells = pd.concat([of_arm.cells for of_arm in of_arms], ignore_index=True)
    failed = int((cells["status"] == "failed").sum())
    err.print(f"{bar.ran} cells run, {bar.kept} kept, {failed} failed", highlight=False)
    trials = {paths.shown(plan.data) for plan in plans if plan.is_trial and out is None}
    for folder in trials:
        err.print(f"not as the lab's files say, so kept apart: speclab show {lab} --data {folder}", highlight=False)
    if not all(plan.keeps_tables for plan in plans):
        remedy = "give --out to keep these and show them"
        err.print(f"data/derived is as it was: it holds whole arms as their files say; {remedy}", highlight=False)
    for line in tables.failures(cells):
        err.print(line, style="yellow", highlight=False, markup=False, soft_wrap=True)
    if failed:
        err.print("each failed record says why; a second run tries them again", style="yellow")
        raise typer.Exit(1)
