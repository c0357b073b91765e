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
    device: Annotated[
        devices.Kind | None, typer.Option(help="Device to time; a GPU by default, if there is one.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="Total time, s.")] = 120.0,
    dtype: Annotated[Dtype, typer.Option(help="Number format of weights and cache.")] = "bfloat16",
    layers: Annotated[int | None, typer.Option(help="Layers to run; by default as many as fit.")] = None,
    sampling: Annotated[bool, typer.Option("--sampling", help="Time the choice of the likeliest token too.")] = False,
    graphs: Annotated[bool, typer.Option("--graphs/--no-graphs", help="CUDA graphs, on a GPU.")] = True,
    out: Annotated[Path | None, typer.Option(help="File for the record; in data/runs/ by default.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON list of flat objects, a point each.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be timed.")] = False,
) -> None:
    """Time the steps of a model on this machine: random weights, no server, about two minutes.

    Rows x positions x context, best first, as far as time allows; the record lists what was left out.
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
        raise UserError("a record exists already", "move it away, or give this one its own file (--out)", file=file)
    needed("torch")
    record.make_room(file)
    from speclab.probe.run import run  # torch takes seconds to import

    with Console(stderr=True).status("making weights") as status:
        probed = run(planned, kind, seconds, graphs=graphs, progress=status.update)
    record.write(file, probed)
    rows = record.frame(probed)
    if json:
        typer.echo(strict_json.dumps(strict_json.rows(rows)))
    else:
        typer.echo(report.result(probed, rows))
    for line in _remarks(probed):
        typer.echo(line, err=True)
    typer.echo(f"the record: {paths.shown(file)}", err=True)


def _remarks(probed: ProbeRecord) -> list[str]:
    """Return what a reader of the figures should know before believing them."""
    remarks = []
    if abs(probed.drift) > DRIFT_WORTH_SAYING:
        remarks.append(f"the first point took {probed.drift:+.0%} at the end: something else is using this machine")
    for reason in ("memory", "time"):
        count = sum(point.reason == reason for point in probed.left_out)
        if count:
            remarks.append(f"{count} points left out: too little {reason}")
    return remarks
