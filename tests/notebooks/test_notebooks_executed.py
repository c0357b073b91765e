"""The executed notebooks that the book shows: clean, and each compared with what it shows when it is run again."""

from __future__ import annotations

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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_figures_cell_shows_the_figure_alone(page: pages.Page) -> None:
    # MyST-NB wraps every output of the cell in a figure of the same name
    for cell in nbformat.read(page.notebook, as_version=4).cells:
        if "figure" in cell.metadata.get("mystnb", {}):
            assert [list(output.data) for output in cell.outputs] == [["image/svg+xml", "text/plain"]]


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
