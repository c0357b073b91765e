from __future__ import annotations

from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell

from speclab.errors import UserError


def test_a_notebook_shows_one_line() -> None:
    shown: list[str] = []
    shell = InteractiveShell()
    shell._showtraceback = lambda kind, error, lines: shown.extend(lines)  # where a kernel takes them from
    try:
        raise UserError("found 'x'", "write a list", file=Path("lab.yml"), key="arms")
    except UserError:
        shell.showtraceback()
    assert shown == ["speclab: lab.yml: arms: found 'x'; write a list"]
