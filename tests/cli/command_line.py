"""The command line as a shell calls it, but in this process: to import it takes longer than most of what it does."""

from __future__ import annotations

import io
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from speclab.cli import app
from speclab.cli.options import err

COLUMNS = 100


@dataclass(frozen=True)
class Done:
    """What a command left."""

    returncode: int
    stdout: str
    stderr: str


def speclab(*arguments: str | Path, **variables: str) -> Done:
    """Run a command in an environment that holds nothing but these variables."""
    out, complaints = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(complaints):
        for name in list(os.environ):
            patch.delenv(name)
        for name, value in {"COLUMNS": str(COLUMNS), "PATH": "", **variables}.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["speclab", *map(str, arguments)])
        patch.setattr(err, "width", COLUMNS)  # it was made before the variables were set
        try:
            app()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
    return Done(code, out.getvalue(), complaints.getvalue())
