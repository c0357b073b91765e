"""The executed notebooks that the book shows: clean, and each compared with what it shows when it is run again."""

from __future__ import annotations

import hashlib
import re
import tomllib

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


def test_every_notebook_is_run_again_and_every_cell_compared() -> None:
    # pytest does both itself: nbval is on, and the notebooks are among what it collects
    project = tomllib.loads((paths.root() / "pyproject.toml").read_text(encoding="utf-8"))
    settings = project["tool"]["pytest"]["ini_options"]
    assert "--nbval" in settings["addopts"].split()
    folders = [folder for folder in settings["testpaths"] if folder != "tests"]
    collected = {file for folder in folders for file in (paths.root() / folder).rglob("*.ipynb")}
    assert {page.notebook for page in PAGES} == collected
    for file in collected:
        text = file.read_text(encoding="utf-8").lower()
        # what makes nbval skip a cell or its outputs
        assert not re.search(r"nbval|raises-exception|pytest_validate", text), file
