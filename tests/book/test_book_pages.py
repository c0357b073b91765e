"""What makes a page out of date, on a checkout made for the test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from speclab import lab as labs
from speclab import paths
from speclab.book import build, listing, pages

ROOT = paths.root()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(ROOT / "labs", tmp_path / "labs")
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    shutil.copy(ROOT / "constraints.txt", tmp_path)
    monkeypatch.setenv("SPECLAB_ROOT", str(tmp_path))
    for page in [*pages.runs(), *pages.analyses()]:
        for file in (page.notebook, *page.outputs):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(page.name, encoding="utf-8")
    return tmp_path


def notes() -> dict[str, dict[str, str]]:
    every = [*pages.runs(), *pages.analyses()]
    return {page.name: {"stamp": pages.stamp(page), "left": pages.left(page)} for page in every}


def stale(noted: dict[str, dict[str, str]]) -> list[str]:
    return [page.name for page in build.stale([*pages.runs(), *pages.analyses()], noted)]


def analyses_of(lab: str) -> list[str]:
    return [page.name for page in pages.analyses() if page.name.startswith(f"analysis/{lab}/")]


def test_a_page_for_each_simulated_arm_and_each_result() -> None:
    assert [page.name for page in pages.runs()] == [f"runs/lab09/{arm}" for arm in labs.load("lab09").arms]
    assert len(pages.analyses()) == len(pages.ANALYSES) + len(pages.CHAPTER10) + len(pages.MODEL) >= 18
    assert all(page.template.exists() for page in (*pages.runs(), *pages.analyses()))


def test_nothing_is_run_twice(checkout: Path) -> None:
    noted = notes()
    assert stale(noted) == []
    (checkout / "labs" / "lab09" / "baseline.yml").touch()  # a new date is no change
    assert stale(noted) == []
    assert len(stale({})) == len(noted)


def test_an_edited_arm_runs_that_arm_and_what_reads_it(checkout: Path) -> None:
    noted = notes()
    file = checkout / "labs" / "lab09" / "ngram-k2.yml"
    file.write_text(file.read_text(encoding="utf-8").replace("k = 2", "two positions"), encoding="utf-8")
    assert [name for name in stale(noted) if name.startswith("runs/")] == ["runs/lab09/ngram-k2"]
    read = [*analyses_of("lab09"), *analyses_of("model")]
    assert [name for name in stale(noted) if name.startswith("analysis/")] == read


def test_a_changed_template_runs_its_pages_only(checkout: Path) -> None:
    noted = notes()
    template = checkout / "notebooks" / "lab" / "ngram.ipynb"
    template.write_text(template.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert stale(noted) == ["analysis/lab09/ngram", "analysis/cpu-smollm2/ngram"]


@pytest.mark.parametrize("lose", [Path.unlink, lambda file: file.write_text("edited by hand", encoding="utf-8")])
def test_a_page_that_was_lost_or_edited_is_made_again(checkout: Path, lose: object) -> None:
    noted = notes()
    assert callable(lose)
    lose(checkout / "book" / "analysis" / "lab09" / "revision.ipynb")
    assert stale(noted) == ["analysis/lab09/revision"]


def test_a_changed_table_runs_the_analyses_and_the_arm_that_wrote_it(checkout: Path) -> None:
    noted = notes()
    pages.runs()[0].outputs[0].write_text("edited by hand", encoding="utf-8")
    assert stale(noted) == ["runs/lab09/baseline", *analyses_of("lab09")]


def test_a_changed_table_of_the_model_runs_the_pages_of_the_model(checkout: Path) -> None:
    folder = checkout / "data" / "derived" / "chapter10"
    folder.mkdir(parents=True)
    noted = notes()
    (folder / "points.csv").write_text("device,workload\n", encoding="utf-8")
    assert stale(noted) == [f"analysis/chapter10/{template}" for template in pages.CHAPTER10]


def test_a_lost_widget_is_made_again(checkout: Path) -> None:
    noted = notes()
    (checkout / "book" / "widgets" / "chapter10_explorer.html").unlink()
    assert stale(noted) == ["analysis/chapter10/explorer"]


def test_a_changed_record_runs_the_analyses_of_its_lab(checkout: Path) -> None:
    folder = checkout / "data" / "runs" / "vllm-a-cpu" / "cpu-smollm2"
    folder.mkdir(parents=True)
    noted = notes()
    (folder / "text-float32.json").write_text("{}", encoding="utf-8")
    assert stale(noted) == analyses_of("cpu-smollm2")


def test_new_versions_run_everything(checkout: Path) -> None:
    noted = notes()
    (checkout / "constraints.txt").write_text("numpy==3.0\n", encoding="utf-8")
    assert len(stale(noted)) == len(noted)


def test_the_committed_status_tables_are_the_ones_that_the_code_writes() -> None:
    for file, content in listing.files().items():
        assert file.read_text(encoding="utf-8") == content
