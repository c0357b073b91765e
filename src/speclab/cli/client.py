"""The commands about this client: a mock server to try it on, and what it sees cleanly."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from speclab.cli.options import err
from speclab.errors import UserError

if TYPE_CHECKING:
    from speclab.load.fidelity import Trial


def mock(
    script: Annotated[
        Path | None, typer.Argument(help="YAML or JSON, with the keys of speclab.engines.mock_script.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any free port.")] = 8000,
    host: Annotated[str, typer.Option(help="Address to listen on; this machine alone by default.")] = "127.0.0.1",
    model: Annotated[str | None, typer.Option(help="The model it says it serves; the script's by default.")] = None,
) -> None:
    """Start a server that speaks vLLM's dialect and serves no model: answers, times and faults are scripted.

    It prints its address, and serves until Ctrl-C. What it gives is no measurement of anything.
    """
    from speclab.engines.mock import MockServer, precise_loop, serve
    from speclab.engines.mock_script import DEMONSTRATION, read

    scripted = read(script) if script is not None else DEMONSTRATION
    if model is not None:
        scripted = scripted.model_copy(update={"model": model})
    try:
        with suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=precise_loop) as runner:
            runner.run(serve(MockServer(scripted, port, host)))
    except OSError as error:
        remedy = "give another --port, or 0 for any free one"
        raise UserError(f"cannot listen on {host}:{port} ({error.strerror or error})", remedy) from None


def selftest(
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Measure how many events a second this client sees as they are sent: its clean rate.

    A stub sends streams with known gaps. Clean is a load of which no event is lost, the mean gap is within 0.5% of the
    stub's and the 99th percentile within 10%. Run it while the machine has nothing else to do.
    """
    from speclab.load.selftest import keep_clean_rate

    with err.status("a few streams, then more: about half a minute"):
        measured = keep_clean_rate()
    if json:
        typer.echo(measured.model_dump_json(indent=2))
        return
    console = Console(highlight=False)
    console.print(_table(measured.tried))
    rate = measured.clean_rate_per_s
    if rate is None:
        console.print("the machine is too busy to tell: not even the stub sent in time")
    else:
        console.print(f"clean rate: {rate:,.0f} events/s")
    if not rate:
        raise typer.Exit(1)


def _table(tried: tuple[Trial, ...]) -> Table:
    columns = ("streams", "events/s", "p50 gap, ms", "p99", "mean", "lost", "p99 as sent", "clean")
    table = Table(*columns, box=None, header_style="bold")
    for trial in tried:
        figures = (trial.p50_ms, trial.p99_ms, trial.mean_ms)
        sent = "-" if trial.stub_p99_ms is None else f"{trial.stub_p99_ms:.2f}"
        verdict = "yes" if trial.is_clean else "stub late" if trial.is_disturbed else "no"
        row = (f"{trial.streams}", f"{trial.rate_per_s:,.0f}", *(f"{figure:.2f}" for figure in figures))
        table.add_row(*row, f"{trial.lost}", sent, verdict)
    return table
