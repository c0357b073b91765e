"""The command that plans a lab's next measurement: ``speclab plan``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from speclab import paths, results
from speclab.cli.options import DataOption, EngineOption, LabName, err
from speclab.errors import UserError

LONGEST_H = 10_000.0


def plan_lab(
    lab: LabName,
    half_width: Annotated[
        str, typer.Option(help="Half-width of each speed-up's 95% interval, as a share of it: 5% or 0.05.")
    ] = "5%",
    hours: Annotated[
        float | None, typer.Option(help="Hours there are; as many as the half-width needs by default.")
    ] = None,
    engine: EngineOption = None,
    data: DataOption = None,
    prompts: Annotated[
        int | None, typer.Option(min=2, help="Plan as if each workload had so many prompts; the lab's by default.")
    ] = None,
    write: Annotated[Path | None, typer.Option(help="Write the plan here, for speclab run LAB --plan.")] = None,
    backtest: Annotated[
        bool, typer.Option("--backtest", help="Instead: what the pilot's repeats would have forecast for each other.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Say from a lab's records how long to measure what, where minutes are best spent, and what will be resolved."""
    from speclab.budget import backtest as backtests
    from speclab.budget import backtest_report, outlook, reading, report, run_plan

    wanted = _share(half_width)
    if hours is not None and not 0 < hours <= LONGEST_H:
        raise UserError(f"found {hours:g}", f"give more than 0 hours, and {LONGEST_H:,.0f} at most", key="--hours")
    lab_results = results.of(lab, engine, data=data)
    console = Console(highlight=False, soft_wrap=True)
    title = f"{lab_results.lab.title}\n{lab_results.source}\n"
    if backtest:
        made = backtests.of(lab_results, prompts)
        if json:
            typer.echo(backtest_report.to_json(made))
        else:
            console.print(title)
            console.print(backtest_report.rendered(made))
        return
    pilot = reading.of(lab_results, engine, data, prompts)
    plan = outlook.outlook(pilot, wanted, hours, lab_results.findings)
    if json:
        typer.echo(report.to_json(plan, lab_results.lab))
    else:
        console.print(title)
        console.print(report.rendered(plan, lab_results.lab))
    if write is not None:
        run_plan.write(run_plan.of(plan.spending, lab_results.lab), write)
        err.print(
            f"written: {paths.shown(write)}; run it: speclab run {lab} --plan {write}", highlight=False, markup=False
        )


def _share(text: str) -> float:
    """Return a share written as ``5%`` or ``0.05``."""
    number, is_percent = text.strip().removesuffix("%"), text.strip().endswith("%")
    try:
        share = float(number) / (100 if is_percent else 1)
    except ValueError:
        share = math.nan
    if not 0 < share < 1:
        remedy = "give a share of the speed-up above 0 and below 100%, as 5% or 0.05"
        raise UserError(f"found {text!r}", remedy, key="--half-width")
    return share
