from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from speclab import paths
from speclab.book import deterministic

FIXTURES = Path(__file__).parent / "fixtures"


def papermill(template: Path, out: Path, *parameters: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "papermill", "--engine", "speclab", "--no-progress-bar", str(template), str(out)]
    return subprocess.run([*command, *parameters], capture_output=True, text=True, check=False, cwd=out.parent)


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("executed")
    files = [folder / "one.ipynb", folder / "two.ipynb"]
    for file in files:
        done = papermill(FIXTURES / "numbers.ipynb", file, "-p", "label", "EAGLE-3, k = 3", "-p", "value", "2.25")
        assert done.returncode == 0, done.stderr
    return files


def test_two_runs_leave_the_same_bytes(executed: list[Path]) -> None:
    one, two = (file.read_bytes() for file in executed)
    assert len(one) > 1000
    assert one == two


def test_keeps_parameters_and_nothing_of_the_run(executed: list[Path]) -> None:
    text = executed[0].read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.papermill == {"parameters": {"label": "EAGLE-3, k = 3", "value": 2.25}}
    assert [cell.id for cell in notebook.cells] == [f"cell-{n:02d}" for n in range(6)]
    assert not any({"papermill", "execution"} & set(cell.metadata) for cell in notebook.cells)
    for local in (str(executed[0].parent), str(paths.root()), str(Path.home()), sys.prefix):
        assert local not in text


def test_reader_sees_the_parameters_once(executed: list[Path]) -> None:
    cells = nbformat.read(executed[0], as_version=4).cells
    assert cells[1].metadata.tags == ["parameters", "remove-cell"]
    assert cells[2].metadata.tags == ["hide-input", "injected-parameters"]


def test_pieces_of_a_stream_are_one_output(executed: list[Path]) -> None:
    outputs = nbformat.read(executed[0], as_version=4).cells[3].outputs
    assert [output.text for output in outputs if output.output_type == "stream"] == ["first piece\nsecond piece\n"]


def test_heading_falls_back_to_the_templates_when_a_parameter_is_missing(executed: list[Path]) -> None:
    # the fixture's heading is "{label} ({lab})", and lab was not given
    assert nbformat.read(executed[0], as_version=4).cells[0].source == "# A heading of the template"


def test_heading_is_written_from_the_parameters() -> None:
    notebook = new_notebook(
        cells=[
            new_code_cell("# no heading"),
            new_markdown_cell("Before\n# Template\nafter"),
            new_markdown_cell("# Two"),
        ],
        metadata={
            "speclab": {"heading": "{label} ({lab})"},
            "papermill": {"parameters": {"label": r"n-gram \1", "lab": "lab09"}},
        },
    )
    deterministic.head(notebook)
    assert [cell.source for cell in notebook.cells] == ["# no heading", "Before\n# n-gram \\1 (lab09)\nafter", "# Two"]


@pytest.mark.parametrize(
    ("folder", "reference"),
    [("book/analysis/lab09", "../../figures"), ("", "book/figures"), ("notes/mine", "../../book/figures")],
)
def test_a_notebook_that_is_kept_elsewhere_finds_its_figures(
    folder: str, reference: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECLAB_ROOT", str(tmp_path))
    shown = {"text/markdown": "![Lines (falling)](../../figures/speed.svg)\n\nFalling [1](x.svg)."}
    cell = new_code_cell(outputs=[new_output("execute_result", data=shown)])
    notebook = deterministic.refer(new_notebook(cells=[new_markdown_cell("# One"), cell]), tmp_path / folder)
    expected = f"![Lines (falling)]({reference}/speed.svg)\n\nFalling [1](x.svg)."
    assert notebook.cells[1].outputs[0].data["text/markdown"] == expected


def test_streams_of_two_names_stay_apart() -> None:
    streams = [new_output("stream", name=name, text=name) for name in ("stdout", "stderr", "stderr", "stdout")]
    notebook = deterministic.normalise(new_notebook(cells=[new_code_cell("x", outputs=streams)]))
    assert [output.text for output in notebook.cells[0].outputs] == ["stdout", "stderrstderr", "stdout"]


def test_a_failing_notebook_fails_and_says_where(tmp_path: Path) -> None:
    out = tmp_path / "out.ipynb"
    done = papermill(FIXTURES / "failing.ipynb", out, "-p", "value", "7")
    assert done.returncode == 1
    assert "ValueError: 7" in done.stderr
    notebook = json.loads(out.read_text(encoding="utf-8"))
    assert notebook["metadata"]["papermill"]["exception"] is True
    assert "papermill-error-cell-tag" in notebook["cells"][0]["metadata"]["tags"]
