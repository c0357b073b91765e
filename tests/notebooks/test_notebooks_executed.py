"""The executed notebooks that the book shows: clean, and what they show comes out again."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys

import nbformat
import pytest

from speclab import paths
from speclab.book import pages

PAGES = [*pages.runs(), *pages.analyses()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_an_executed_notebook_is_whole(page: pages.Page) -> None:
    text = page.notebook.read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.papermill == {"parameters": page.parameters}
    assert "papermill-error-cell" not in text
    assert str(paths.root()) not in text
    assert not re.search(r'"[^"]*(/home/|/root/|/tmp/|C:\\\\Users)', text)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert outputs
    # what a kernel says of itself differs from run to run
    assert not [output for output in outputs if output.get("name") == "stderr" or output.output_type == "error"]


def test_every_figure_that_a_notebook_shows_is_the_one_in_the_book() -> None:
    shown = [
        (page.notebook.parent, output.data)
        for page in PAGES
        for cell in nbformat.read(page.notebook, as_version=4).cells
        for output in cell.get("outputs", [])
        if ".svg sha256:" in output.get("data", {}).get("text/plain", "")
    ]
    files = {
        (folder / re.search(r"\]\((.*)\)", data["text/markdown"])[1]).resolve(): data["text/plain"]  # type: ignore[index]
        for folder, data in shown
    }
    assert set(files) == set((paths.book() / "figures").glob("*.svg"))
    for file, text in files.items():
        assert text == f"{file.name} sha256:{hashlib.sha256(file.read_bytes()).hexdigest()[:32]}"


@pytest.mark.book
@pytest.mark.parametrize("folder", ["runs", "analysis"])
def test_every_notebook_shows_the_same_again(folder: str) -> None:
    notebooks = sorted((paths.book() / folder).rglob("*.ipynb"))
    assert notebooks
    command = [
        sys.executable, "-m", "pytest", "--nbval", "-q", "-p", "no:cacheprovider", "-o", "filterwarnings=default",
        "-o", "addopts=", *map(str, notebooks),
    ]  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(command, cwd=paths.root(), env=environment, capture_output=True, text=True, check=False)
    closing = done.stdout.strip().splitlines()[-1]
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert int(re.match(r"(\d+) passed", closing)[1]) >= 4 * len(notebooks), closing  # type: ignore[index]
