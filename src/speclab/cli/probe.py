"""`speclab probe` on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from speclab import paths
from speclab.errors import UserError
from speclab.probe import devices, record, report
from speclab.probe.needs import needed
from speclab.probe.plan import Dtype, plan
from speclab.probe.record import ProbeRecord
from speclab.probe.shapes import shape as shape_of
from speclab.results import strict_json

DRIFT_WORTH_SAYING = 0.05


def probe(
    shape: Annotated[str, typer.Argument(help="A known shape (llama-3.1-8b), or a folder with a config.json.")],
    device: Annotated[devices.Kind | None, typer.Option(help="Where; a GPU by default, if there is one.")] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="Time for all of it, s.")] = 120.0,
    dtype: Annotated[Dtype, typer.Option(help="Number format of weights and cache.")] = "bfloat16",
    layers: Annotated[int | None, typer.Option(help="Layers to run; by default as many as fit.")] = None,
    sampling: Annotated[bool, typer.Option("--sampling", help="Time the choice of the likeliest token too.")] = False,
    graphs: Annotated[bool, typer.Option("--graphs/--no-graphs", help="CUDA graphs, on a GPU.")] = True,
    out: Annotated[Path | None, typer.Option(help="File for the record; in data/runs/ by default.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON list of flat objects, a point each.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be timed.")] = False,
) -> None:
    """Time the steps of a model on this machine: random weights, no server, about two minutes.

    Rows x positions x context, best first, as far as the time goes; the record says what was left out.
    """
    model, kind = shape_of(shape), devices.chosen(device)
    planned = plan(model, devices.free_bytes(kind), dtype, layers=layers, sampling=sampling)
    if dry_run:
        typer.echo(
            strict_json.dumps(strict_json.rows(report.planned(planned)))
            if json
            else report.overview(planned, kind, seconds)
        )
        return
    file = out or record.file_of(paths.runs(), devices.slug(kind), model.slug, dtype)
    if out is None and file.exists():
        raise UserError("a record is there", "move it away, or give this one a file of its own (--out)", file=file)
    needed("torch")
    record.make_room(file)
    from speclab.probe.run import run  # torch takes seconds to import

    with Console(stderr=True).status("making weights") as status:
        done = run(planned, kind, seconds, graphs=graphs, progress=status.update)
    record.write(file, done)
    rows = record.frame(done)
    if json:
        typer.echo(strict_json.dumps(strict_json.rows(rows)))
    else:
        typer.echo(report.result(done, rows))
    for line in _remarks(done):
        typer.echo(line, err=True)
    typer.echo(f"the record: {paths.shown(file)}", err=True)


def _remarks(done: ProbeRecord) -> list[str]:
    """Return what a reader of the figures should know before believing them."""
    said = []
    if abs(done.drift) > DRIFT_WORTH_SAYING:
        said.append(f"the first point took {done.drift:+.0%} at the end: something else is using this machine")
    for reason in ("memory", "time"):
        many = sum(each.reason == reason for each in done.left_out)
        if many:
            said.append(f"{many} points left out: too little {reason}")
    return said
