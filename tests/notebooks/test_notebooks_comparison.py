"""The comparison of `make test` fails on every kind of output that changed: tried on a copy of a page of the book."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_output

from speclab import paths

PAGE = paths.book() / "analysis" / "lab09" / "coverage.ipynb"
ADDED = {
    "prints": ("print('12 cells\\n34 requests')", "12 cells\n34 requests\n"),
    "prints nothing": ("one = 1", ""),
    "finds what another kernel left": ("import pandas\nprint(hasattr(pandas, 'left'))\npandas.left = 1", "False\n"),
}


def another_digit(text: str) -> str:
    at = [found.start() for found in re.finditer(r"\d", text)][-1]
    return text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :]


def one_digit_of(kind: str) -> Callable[[Any], None]:
    def change(cell: Any) -> None:
        data = next(output.data for output in reversed(cell.outputs) if kind in output.get("data", {}))
        data[kind] = another_digit(data[kind])

    return change


def a_printed_digit(cell: Any) -> None:
    cell.outputs[0].text = another_digit(cell.outputs[0].text)


CHANGES: dict[str, tuple[str, Callable[[Any], None]]] = {
    "a digit of a figure": ("figures.keep(", one_digit_of("text/plain")),
    "a digit of a table": ('table.keep(shape, "coverage")', one_digit_of("text/html")),
    "a digit of a number in the prose": ('paste("seeds"', one_digit_of("application/papermill.record/text/plain")),
    "a digit that was printed": (ADDED["prints"][0], a_printed_digit),
    "an output that comes no more": (
        ADDED["prints nothing"][0],
        lambda cell: cell.outputs.append(new_output("stream", text="1\n")),
    ),
    "an output that is new": ("width = coverage.pivot(", lambda cell: cell.outputs.clear()),
}
"""What is changed, the cell it is changed in, and how."""


def number(notebook: Any, source: str) -> int:
    (found,) = [at for at, cell in enumerate(code_of(notebook)) if source in cell.source]
    return found


def code_of(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def copy(folder: Path = PAGE.parent) -> Any:
    """Return the page with cells of our own, its figures referred to from a folder."""
    notebook = nbformat.read(PAGE, as_version=4)
    here, there = (os.path.relpath(paths.book() / "figures", place) for place in (PAGE.parent, folder))
    for data in (output.data for cell in code_of(notebook) for output in cell.outputs if "data" in output):
        if "text/markdown" in data:
            data["text/markdown"] = data["text/markdown"].replace(f"]({here}/", f"]({there}/")
    for source, printed in ADDED.values():
        outputs = [new_output("stream", text=printed)] if printed else []
        notebook.cells.append(new_code_cell(source, outputs=outputs, execution_count=1))
    return notebook


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], str]:
    """What pytest says of each cell of a true copy and of one with all the changes."""
    folder = tmp_path_factory.mktemp("notebooks")
    nbformat.write(copy(folder), folder / "true.ipynb")
    changed = copy(folder)
    for source, change in CHANGES.values():
        change(code_of(changed)[number(changed, source)])
    nbformat.write(changed, folder / "changed.ipynb")
    command = [
        sys.executable, "-m", "pytest", "-c", paths.root() / "pyproject.toml", "--rootdir", folder, "-q", "-rpf",
        "-p", "forked_kernels", "-p", "no:cacheprovider", "true.ipynb", "changed.ipynb",
    ]  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environment["PYTHONPATH"] = str(Path(__file__).parents[1])
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    said = re.findall(r"^(PASSED|FAILED) (\w+)\.ipynb::Cell (\d+)", done.stdout, re.MULTILINE)
    assert len(said) == 2 * len(code_of(changed)), done.stdout[-4000:] + done.stderr[-1000:]
    return {(name, int(cell)): verdict for verdict, name, cell in said}


def test_a_true_copy_passes(verdicts: dict[tuple[str, int], str]) -> None:
    assert {verdict for (name, _), verdict in verdicts.items() if name == "true"} == {"PASSED"}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_output_fails(what: str, verdicts: dict[tuple[str, int], str]) -> None:
    assert verdicts["changed", number(copy(), CHANGES[what][0])] == "FAILED"


def test_what_was_not_changed_passes_beside_it(verdicts: dict[tuple[str, int], str]) -> None:
    # among it the cell that looks for what the other notebook's kernel left
    failed = {cell for (name, cell), verdict in verdicts.items() if (name, verdict) == ("changed", "FAILED")}
    assert failed == {number(copy(), source) for source, _ in CHANGES.values()}
