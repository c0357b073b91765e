"""A lab measured elsewhere becomes the book: one flag in its file, one command for its cells, one for its pages.

The machine poses: a mock that speaks as vLLM does, and a GPU that is only a name. That what the pages say follows from
the records is shown by this; nothing about an H100 is.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from itertools import product
from pathlib import Path

import nbformat
import pytest
import yaml

import posing
from speclab import lab as labs
from speclab import paths, results
from speclab.book import build, pages

pytestmark = [pytest.mark.book, pytest.mark.whole_lab]

LAB = "lab09"
SHORT = {"length_s": 1.0, "drop_first_s": 0.35, "drop_last_s": 0.05}
BIN = Path(sys.executable).parent
LINKED = ("notebooks", "constraints.txt", "README.md", "data/published", "data/coverage", "data/drafters", "data/runs")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this checkout in which the lab was measured with one command, and its notebooks made with another."""
    copy, variables = tmp_path_factory.mktemp("checkout"), posing.environment(tmp_path_factory.mktemp("posing"))
    _copy(copy)
    _flip(copy / "labs" / LAB / "lab.yml")
    environment = {**variables, "SPECLAB_ROOT": str(copy)}
    # exit code 1: cells failed, as those may that ask more of this machine than it can read in time
    _run([BIN / "speclab", "run", LAB, "--no-selftest"], copy, environment, codes=(0, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPECLAB_ROOT", str(copy))
        _keep_the_other_pages()
    elsewhere = {**environment, "PATH": environment["PATH"].partition(":")[2], "PYTHONPATH": ""}
    _run([BIN / "speclab", "book"], copy, elsewhere)  # no GPU and no vLLM here: the records say what they came from
    return copy


def _copy(copy: Path) -> None:
    root = paths.root()
    shutil.copytree(root / "book", copy / "book", symlinks=True, ignore=shutil.ignore_patterns("_build", "conf.py"))
    shutil.copytree(root / "labs", copy / "labs")
    shutil.copytree(root / "data" / "derived", copy / "data" / "derived")
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy(root / name, copy)
    for name in LINKED:
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if name == "data/runs":  # the new records go beside the measured ones
            target.mkdir()
            for machine in sorted(path for path in paths.runs().iterdir() if not path.name.startswith("simulated")):
                (target / machine.name).symlink_to(machine)
        else:
            target.symlink_to(root / name)


def _flip(file: Path) -> None:
    """Let vLLM run the lab, in cells as short as a test needs; the rest of the file stays as it is."""
    text, flags = re.subn(r"^engine: simulated", "engine: vllm", file.read_text(encoding="utf-8"), flags=re.M)
    text, phases = re.subn(r"^phases: .*$", f"phases: {SHORT}".replace("'", ""), text, flags=re.M)
    assert (flags, phases) == (1, 1)
    file.write_text(text, encoding="utf-8")


def _keep_the_other_pages() -> None:
    """Note the pages of other labs as made: they are those of this checkout, and their own tests hold them.

    What was drawn for the lab's old results goes first, as the build itself would remove it: the note is of the rest.
    """
    for folder in ("figures", "tables"):
        for old in (paths.book() / folder).glob(f"{LAB}_*"):
            old.unlink()
    noted = build.notes()
    for page in [*pages.runs(), *pages.analyses()]:
        if f"/{LAB}/" not in page.name and page.notebook.exists():
            noted.keep(page.name, page.key, page.left)
    for shelf in build._shelves():
        noted.keep(f"drawn {shelf}", "", build._drawn(shelf))


def _run(command: list[object], copy: Path, environment: dict[str, str], codes: tuple[int, ...] = (0,)) -> None:
    done = subprocess.run(
        [str(word) for word in command], cwd=copy, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode in codes, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.fixture
def at_home(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPECLAB_ROOT", str(checkout))
    return checkout


def test_every_cell_is_recorded_and_every_arm_has_results(at_home: Path) -> None:
    lab = labs.load(LAB)
    (source,) = results.sources(LAB)
    assert (source.source, source.machine) == (posing.BADGE, "vllm-nvidia-h100-80gb-hbm3")
    assert Counter(record.asked.arm for record in results.records(LAB, "vllm")) == dict.fromkeys(lab.arms, 18)
    cells = results.of(LAB).tables.cells
    finished = cells[(cells["status"] == "ok") & (cells["concurrency"] <= 16)]
    # a cell of a second hangs where the machine is busy, or where the step of 256 rows before it is still on its way
    assert {(row.arm, row.workload) for row in finished.itertuples()} == set(product(lab.arms, lab.workloads))
    assert source.repeats == 1


def test_the_findings_are_of_this_source_and_pay_where_the_script_pays(at_home: Path) -> None:
    found = results.of(LAB)
    assert set(found.findings["source"]) == {posing.BADGE}
    lengths = found.rows("reported_acceptance_length", arm="eagle3-k3", workload="chat")["value"].dropna()
    assert lengths.median() == pytest.approx(1 + 0.75 + 0.55 + 0.40, rel=0.1)
    gains = found.rows("speed_up", arm="eagle3-k3", concurrency=[1, 4])["value"].dropna()
    assert len(gains) >= 2
    assert (gains > 1).all()
    losses = found.rows("speed_up", arm="ngram-k8", workload="chat", concurrency=[16, 64])["value"].dropna()
    assert (losses < 1).all()


@pytest.mark.parametrize("arm", labs.load(LAB).arms)
def test_an_arm_has_a_run_notebook_made_of_its_records(at_home: Path, arm: str) -> None:
    notebook = nbformat.read(at_home / "book" / "runs" / LAB / f"{arm}.ipynb", as_version=4)
    assert notebook.metadata.papermill.parameters | {"engine": "vllm", "kept": True} == dict(
        notebook.metadata.papermill.parameters
    )
    shown = "".join(output.get("data", {}).get("text/html", "") for cell in notebook.cells for output in _outputs(cell))
    assert posing.BADGE in shown
    assert "vllm.entrypoints.openai.api_server" in shown
    assert ("--speculative-config" in shown) == (arm != labs.BASELINE)
    assert "simulated" not in shown
    tables = at_home / "data" / "derived" / LAB / "vllm-nvidia-h100-80gb-hbm3"
    assert (tables / f"{arm}.cells.csv").is_file()


def _outputs(cell: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return cell.get("outputs", [])


def test_every_analysis_of_the_lab_bears_the_badge(at_home: Path) -> None:
    notebooks = sorted((at_home / "book" / "analysis" / LAB).glob("*.ipynb"))
    of_the_lab = [file for file in notebooks if file.stem != "coverage"]  # that one is about labs with a known truth
    assert len(of_the_lab) >= 8
    assert [file.stem for file in of_the_lab if posing.BADGE not in file.read_text(encoding="utf-8")] == []


def test_the_contents_list_the_notebooks(at_home: Path) -> None:
    text = (at_home / "_toc.yml").read_text(encoding="utf-8")
    assert all(f"file: runs/{LAB}/{arm}\n" in text for arm in labs.load(LAB).arms)
    assert yaml.safe_load(text)["root"] == "index"


@pytest.fixture(scope="module")
def html(checkout: Path) -> Path:
    command = [BIN / "jupyter-book", "build", "book/", "-W", "-n", "--keep-going", "-q"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPECLAB_ROOT", str(checkout))
        _run(command, checkout, {**os.environ, "SPECLAB_ROOT": str(checkout)})
    return checkout / "book" / "_build" / "html"


def test_every_page_of_the_lab_says_measured_and_none_says_simulated(html: Path) -> None:
    names = [*sorted((html / "lab").glob("*.html")), *sorted((html / "runs" / LAB).glob("*.html"))]
    names += [page for page in sorted((html / "analysis" / LAB).glob("*.html")) if page.stem != "coverage"]
    assert len(names) >= 5 + 8 + 8
    articles = {page: _article(page) for page in names}
    assert [page.name for page, text in articles.items() if posing.BADGE not in text] == []
    assert [page.name for page, text in articles.items() if re.search(r"source-simulated", text)] == []
    prose = {page: text for page, text in articles.items() if page.parent.name == "lab"}
    assert len(prose) >= 8
    assert [page.name for page, text in prose.items() if re.search(r"\bsimulated\b", text)] == []


def test_the_contents_of_the_built_book_list_the_run_notebooks(html: Path) -> None:
    front = (html / "index.html").read_text(encoding="utf-8")
    assert all(f'href="runs/{LAB}/{arm}.html"' in front for arm in labs.load(LAB).arms)


def _article(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    return text[text.index("<article") : text.index("</article>")]
