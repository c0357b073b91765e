"""The command line: thin, every command one call into the library."""

from __future__ import annotations

import sys
from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from speclab.cli.options import err
from speclab.errors import UserError

FROM = {
    "labs": "lab:list_labs",
    "run": "lab:run_lab",
    "plan": "plan:plan_lab",
    "show": "results:show_speed_up",
    "findings": "results:print_findings",
    "check": "results:check_lab",
    "advise": "results:print_advice",
    "compare": "results:compare_runs",
    "doctor": "machine:diagnose",
    "selftest": "client:selftest",
    "mock": "client:mock",
    "weights": "machine:make_weights",
    "book": "book:book",
    "text-check": "machine:check_text",
    "predict": "predict:predict",
    "validate": "predict:validate",
    "probe": "probe:probe",
    "model": "model:cli",
    "drafter": "drafter:cli",
}
"""Where each command stands: a module of this package, and the function or group in it."""


class _Commands(MutableMapping[str, Any]):
    """The commands by name, each imported when it is asked for: all of them together take two seconds."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            module, _, attribute = FROM[name].partition(":")
            there = getattr(import_module(f"{__name__}.{module}"), attribute)
            if isinstance(there, typer.Typer):
                made: Any = typer.main.get_group(there)
            else:
                alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
                alone.command(name)(there)
                made = typer.main.get_command(alone)
            made.name = name
            self._made[name] = made
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(FROM)

    def __len__(self) -> int:
        return len(FROM)


class _Group(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()


cli = typer.Typer(
    cls=_Group, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, callback=lambda: None,
    help=__doc__,
)  # fmt: skip


def app() -> None:
    """Run the command line; a user's mistake is one line and exit code 2."""
    try:
        cli(standalone_mode=True)
    except UserError as error:
        err.print(f"speclab: {error}", style="red", highlight=False, soft_wrap=True, markup=False)
        sys.exit(2)
