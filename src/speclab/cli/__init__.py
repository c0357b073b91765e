"""The command line: thin, every command one call into the library."""

from __future__ import annotations

import sys

import typer

from speclab.cli import book, client, drafter, lab, machine, model, plan, predict, probe, results
from speclab.cli.options import err
from speclab.errors import UserError

cli = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
cli.command("labs")(lab.list_labs)
cli.command("run")(lab.run_lab)
cli.command("plan")(plan.plan_lab)
cli.command("show")(results.show_speed_up)
cli.command("findings")(results.print_findings)
cli.command("check")(results.check_lab)
cli.command("advise")(results.print_advice)
cli.command("compare")(results.compare_runs)
cli.command("doctor")(machine.diagnose)
cli.command("selftest")(client.selftest)
cli.command("mock")(client.mock)
cli.command("weights")(machine.make_weights)
cli.command("book")(book.book)
cli.command("text-check")(machine.check_text)
cli.command("predict")(predict.predict)
cli.command("validate")(predict.validate)
cli.command("probe")(probe.probe)
cli.add_typer(model.cli, name="model")
cli.add_typer(drafter.cli, name="drafter")


def app() -> None:
    """Run the command line; a user's mistake is one line and exit code 2."""
    try:
        cli(standalone_mode=True)
    except UserError as error:
        err.print(f"speclab: {error}", style="red", highlight=False, soft_wrap=True, markup=False)
        sys.exit(2)
