"""What a command loads before it begins."""

from __future__ import annotations

import subprocess
import sys

import typer.main

from speclab.cli import FROM, cli

PROGRAM = """
import sys
from speclab.cli import cli
from speclab.errors import UserError

def loaded():
    return [name for name in ("matplotlib", "pandas", "scipy.optimize", "scipy.special", "scipy.stats", "torch") if name in sys.modules]

cli(["labs"], standalone_mode=False)
print("labs:", *loaded())
try:
    cli(["findings", "no-such-lab"], standalone_mode=False)
except UserError as error:
    print("findings:", *loaded())
"""  # noqa: E501


def test_a_command_loads_what_it_needs_and_no_more() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["labs:", "findings: pandas"]
    assert "lab09" in done.stdout


def test_every_command_is_where_it_is_said_to_be() -> None:
    commands = typer.main.get_command(cli).commands  # type: ignore[attr-defined]
    assert len(commands) > 10
    assert {name: command.name for name, command in commands.items()} == {name: name for name in FROM}
    assert all(command.help for command in commands.values())
    assert set(commands["drafter"].commands) >= {"train", "measure"}
