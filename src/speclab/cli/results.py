"""The commands that read a lab's results: show, findings, check, advise, compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from speclab import lab as labs
from speclab import paths, results
from speclab.cli import tables
from speclab.cli.options import DataOption, EngineOption, LabName, err
from speclab.errors import UserError
from speclab.results import strict_json


def show_speed_up(
    lab: LabName,
    engine: EngineOption = None,
    data: DataOption = None,
) -> None:
    """Show a lab's speed-up over requests in flight, where it crosses 1, and both acceptance readings."""
    lab_results = results.of(lab, engine, data=data)
    console = Console()
    console.print(f"{lab_results.lab.title}: speed-up over the baseline by requests in flight\n{lab_results.source}\n")
    compared = [
        workload for workload in lab_results.lab.workloads if not lab_results.wide("speed_up", workload=workload).empty
    ]
    for workload in compared:
        console.print(tables.speed_up(lab_results, workload), "")
    if compared:
        at = tables.lowest(lab_results, compared[-1])
        console.print(f"* at {at:g} in flight: tokens per step over all steps, and acceptance length by counters")
    else:
        console.print("nothing stands beside the baseline yet; its own throughput, tok/s:\n")
        for workload in lab_results.lab.workloads:
            if (table := tables.throughput(lab_results, workload)) is not None:
                console.print(table, "")
    cells = lab_results.cells
    failing = tables.failed_checks(cells)
    if (lab_results.findings.query("finding == 'speed_up'")["status"] != "ok").any():
        console.print(
            "! this cell, or the baseline's beside it, failed a check that a speed-up rests on (or the two were"
        )
        console.print("  not run under the same conditions), and is left out of the crossing")
    if failing:
        console.print(f"checks that FAIL, of {len(cells)} cells:")
        for line in failing:
            console.print(f"  {line}", markup=False)
        console.print(f"what to do about each: speclab check {lab_results.lab.name}{_elsewhere(engine, data)}")
    for line in tables.failures(lab_results.tables.cells):
        err.print(line, style="yellow", highlight=False, markup=False, soft_wrap=True)


def _elsewhere(engine: str | None, data: Path | None) -> str:
    """Return the options that say which results were meant."""
    options = {"--engine": engine, "--data": None if data is None else paths.shown(data)}
    return "".join(f" {name} {value}" for name, value in options.items() if value is not None)


def print_findings(
    lab: LabName,
    engine: EngineOption = None,
    data: DataOption = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON list of flat objects.")] = False,
    finding: Annotated[str | None, typer.Option(help="Only this finding, e.g. speed_up.")] = None,
) -> None:
    """Print a lab's findings, one a row."""
    from speclab.findings import long_table

    rows = results.of(lab, engine, data=data).findings
    if finding is not None:
        known = sorted(rows["finding"].unique())
        if finding not in known:
            raise UserError(f"unknown finding {finding!r}", f"there are {', '.join(known)}", key="--finding")
        rows = rows[rows["finding"] == finding]
    if json:
        typer.echo(strict_json.dumps(strict_json.rows(rows, long_table.WHOLE)))
    else:
        typer.echo(rows.to_string(index=False, na_rep="-", float_format="%.4g"))


def check_lab(
    lab: LabName,
    engine: EngineOption = None,
    data: DataOption = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON list of flat objects, a check each.")] = False,
) -> None:
    """Show which checks a lab's cells and the lab as a whole passed, and what to do about the rest.

    Exit code 1 where a verdict rests on failed cells alone, or the lab itself fails a check.
    """
    from speclab.findings import check_report, sentences

    lab_results = results.of(lab, engine, data=data)
    withheld = check_report.withheld(lab_results.findings)
    if json:
        typer.echo(strict_json.dumps(strict_json.rows(lab_results.check_report, check_report.WHOLE)))
    else:
        console = Console(highlight=False, soft_wrap=False)
        console.print(f"{lab_results.lab.title}: checks\n{lab_results.source}\n")
        console.print(tables.check_report(lab_results.check_report))
        if len(withheld):
            console.print(f"\n{len(withheld)} verdicts are withheld:")
        for row in withheld.to_dict("records"):
            why = check_report.failed_at(row, lab_results.cells)
            console.print(f"  {sentences.place(row)}{why}", markup=False, soft_wrap=True)
        if others := check_report.others_withheld(lab_results.findings):
            counts = ", ".join(f"{finding} ({count})" for finding, count in others.items())
            console.print(f"\nother findings withheld, and at how many places: {counts}", markup=False, soft_wrap=True)
    of_the_lab = lab_results.check_report[
        (lab_results.check_report["scope"] == "lab") & (lab_results.check_report["verdict"] == "FAIL")
    ]
    if len(withheld) or len(of_the_lab):
        raise typer.Exit(1)


def print_advice(
    lab: LabName,
    engine: EngineOption = None,
    mix: Annotated[
        str | None, typer.Option(help="Shares of the tokens asked for, e.g. chat=.5,completion=.3,revision=.2.")
    ] = None,
    data: DataOption = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Say which arm to serve at which load, where to switch, what one setting for all costs, and the servers for it."""
    from speclab.advice import advise, report
    from speclab.cli.mix import shares_of

    lab_results = results.of(lab, engine, data=data)
    advice = advise(lab_results, None if mix is None else shares_of(mix, lab_results.lab.workloads))
    if json:
        typer.echo(report.to_json(advice))
    else:
        console = Console(highlight=False, soft_wrap=True)
        console.print(f"{lab_results.lab.title}\n{advice.source}\n")
        console.print(report.rendered(advice))


def compare_runs(
    run_a: Annotated[str, typer.Argument(help="Folder of the first run; or a lab, with --data twice.")],
    run_b: Annotated[str | None, typer.Argument(help="Folder of the second run.")] = None,
    data: Annotated[list[Path] | None, typer.Option(help="Twice: the data folders of the lab's two runs.")] = None,
    lab: Annotated[str | None, typer.Option(help="Which lab, where a folder holds several.")] = None,
    engine: EngineOption = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Say what changed between two runs (a version, a flag, a driver), what came of it, and what is noise."""
    from speclab.results import compare

    if run_b is not None and not data:
        folders = [Path(run_a), Path(run_b)]
    elif run_b is None and data and len(data) == 2:
        folders, lab = data, labs.load(run_a).name
    else:
        remedy = "name two folders, or a lab and --data twice"
        raise UserError(f"found {1 + (run_b is not None)} runs and {len(data or ())} data folders", remedy)
    made = compare.compare(*folders, lab=lab, engine=engine)
    if json:
        typer.echo(compare.to_json(made))
        return
    console = Console(highlight=False)
    for block in tables.comparison(made):
        console.print(block, markup=False) if isinstance(block, str) else console.print(block)
