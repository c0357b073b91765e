from __future__ import annotations

import ast
from pathlib import Path

import nbformat
import papermill
import pytest
import yaml

from speclab import lab as labs
from speclab import paths

FOLDER = paths.root() / "notebooks"
TEMPLATES = sorted(FOLDER.rglob("*.ipynb"))
OF_A_LAB = sorted((FOLDER / "lab").glob("*.ipynb"))
ONCE = [file for file in TEMPLATES if file.parent not in (FOLDER, FOLDER / "lab")]
ARMS = sorted(file for file in paths.labs().glob("*/*.yml") if file.name not in ("lab.yml", "book.yml"))


def known(template: str) -> set[str]:
    return set(papermill.inspect_notebook(str(FOLDER / f"{template}.ipynb")))


def test_there_are_templates() -> None:
    assert {"run_arm", "speed_up", "acceptance", "milliseconds", "ngram"} <= {file.stem for file in TEMPLATES}


@pytest.mark.parametrize("file", ARMS, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_every_key_of_an_arm_is_a_parameter_of_run_arm(file: Path) -> None:
    # papermill only warns of a parameter that the notebook does not have
    keys = set(yaml.safe_load(file.read_text(encoding="utf-8")))
    assert {"lab", "arm", "label"} <= keys <= known("run_arm")


def test_everything_an_arm_may_hold_is_a_parameter_of_run_arm() -> None:
    assert set(labs.Arm.model_fields) | {"engine", "workloads", "concurrencies", "out", "kept"} == known("run_arm")


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: file.stem)
def test_a_template_is_thin_and_holds_no_output(file: Path) -> None:
    notebook = nbformat.read(file, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    parameters = [cell.metadata.get("tags") for cell in code].count(["parameters"])
    assert parameters <= 1 if file in ONCE else parameters == 1
    assert not [cell.source for cell in code if "def " in cell.source or "class " in cell.source]
    headings = [
        line
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        for line in cell.source.splitlines()
        if line.startswith("# ")
    ]
    assert len(headings) == 1


@pytest.mark.parametrize("file", OF_A_LAB, ids=lambda file: file.stem)
def test_an_analysis_takes_a_lab_and_an_engine(file: Path) -> None:
    assert known(f"lab/{file.stem}") == {"lab", "engine"}


@pytest.mark.parametrize("file", [*OF_A_LAB, *ONCE], ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_what_a_template_says_it_reads_is_there(file: Path) -> None:
    stated = nbformat.read(file, as_version=4).metadata.speclab
    for pattern in stated.get("reads", []):
        if "{" not in pattern:
            assert list(paths.root().glob(pattern)), pattern
    for output in stated.get("outputs", []):
        assert (paths.book() / output).is_file()


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: file.stem)
def test_every_figure_has_a_caption_and_words_for_those_who_cannot_see_it(file: Path) -> None:
    for cell in nbformat.read(file, as_version=4).cells:
        if cell.cell_type == "code":
            for call in ast.walk(ast.parse(cell.source)):
                if isinstance(call, ast.Call) and ast.unparse(call.func) in ("figures.keep", "keep"):
                    words = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
                    assert len(words["caption"]) > 20
                    assert len(words["alt"]) > 40
                    assert not set("[]") & set(words["alt"])
