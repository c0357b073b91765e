"""What makes a page out of date, on a checkout made for the test."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from speclab import lab as labs
from speclab import paths
from speclab.book import build, contents, listing, pages, shelf
from speclab.cache.notes import Notes
from speclab.errors import UserError

ROOT = paths.root()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in ("labs", "notebooks", "data/published", "data/derived", "data/coverage"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    for record in (ROOT / "data" / "runs").glob("*/*/*/*/cell.json"):
        into = tmp_path / record.relative_to(ROOT)
        into.parent.mkdir(parents=True)
        into.symlink_to(record)
    for name in ("constraints.txt", "_toc.yml"):
        shutil.copy(ROOT / name, tmp_path)
    monkeypatch.setenv("SPECLAB_ROOT", str(tmp_path))
    for part in shelf_folders():
        (tmp_path / "book" / part).mkdir(parents=True)
    for page in every_page():
        for file in page.left:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(page.name, encoding="utf-8")
    return tmp_path


def shelf_folders() -> list[str]:
    return ["lab", "cpu"]


def every_page() -> list[pages.Page]:
    return [*pages.runs(), *pages.analyses()]


def noted(checkout: Path) -> Notes:
    notes = Notes(checkout / ".build" / "pages.json")
    for page in every_page():
        notes.keep(page.name, page.key, page.left)
    return notes


def stale(notes: Notes) -> set[str]:
    return {page.name for page in build.stale(every_page(), notes)}


def analyses_of(lab: str) -> set[str]:
    return {page.name for page in pages.analyses() if page.name.startswith(f"analysis/{lab}/")}


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def test_a_page_for_each_arm_that_is_simulated_or_has_records_and_for_each_question() -> None:
    for name in ("lab09", "cpu-smollm2"):
        arms = [page.name for page in pages.runs() if page.name.startswith(f"runs/{name}/")]
        assert arms == [f"runs/{name}/{arm}" for arm in labs.load(name).arms]
        assert len(analyses_of(name)) == len(shelf.of(name).templates) >= len(shelf.QUESTIONS)
    assert {"analysis/chapter10/mechanism", "analysis/model/map"} < {page.name for page in pages.analyses()}
    assert all(page.template.exists() for page in every_page())


def test_the_committed_contents_list_and_sources_are_those_that_the_code_writes() -> None:
    text = contents.file().read_text(encoding="utf-8")
    assert contents.with_notebooks(text, every_page()) == text
    for file, content in listing.files().items():
        assert file.read_text(encoding="utf-8") == content


def test_nothing_is_run_twice(checkout: Path) -> None:
    notes = noted(checkout)
    assert stale(notes) == set()
    (checkout / "labs" / "lab09" / "baseline.yml").touch()  # a new date is no change
    assert stale(notes) == set()
    assert len(stale(Notes(checkout / "none.json"))) == len(every_page())


def test_an_edited_arm_runs_that_arm_and_what_reads_the_arms(checkout: Path) -> None:
    notes = noted(checkout)
    edit(checkout / "labs" / "lab09" / "ngram-k2.yml", "k = 2", "two positions")
    moved = stale(notes)
    assert {name for name in moved if name.startswith("runs/")} == {"runs/lab09/ngram-k2"}
    assert analyses_of("lab09") - moved == {"analysis/lab09/coverage"}, "which reads labs of its own"
    assert not moved & (analyses_of("cpu-smollm2") | analyses_of("chapter10"))


def test_a_changed_template_runs_its_pages_only(checkout: Path) -> None:
    notes = noted(checkout)
    template = checkout / "notebooks" / "lab" / "ngram.ipynb"
    template.write_text(template.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert stale(notes) == {"analysis/lab09/ngram", "analysis/cpu-smollm2/ngram"}


@pytest.mark.parametrize("lose", [Path.unlink, lambda file: file.write_text("edited by hand", encoding="utf-8")])
def test_a_page_that_was_lost_or_edited_is_made_again(checkout: Path, lose: object) -> None:
    notes = noted(checkout)
    assert callable(lose)
    lose(checkout / "book" / "analysis" / "lab09" / "revision.ipynb")
    assert stale(notes) == {"analysis/lab09/revision"}


def test_a_changed_table_runs_the_analyses_and_the_simulated_arm_that_wrote_it(checkout: Path) -> None:
    notes = noted(checkout)
    next(iter(pages.runs()[0].outputs)).write_text("edited by hand", encoding="utf-8")
    moved = stale(notes)
    assert {"runs/lab09/baseline"} == {name for name in moved if name.startswith("runs/")}
    assert analyses_of("lab09") - moved == {"analysis/lab09/coverage"}


def test_a_changed_table_of_the_model_runs_the_pages_that_read_it(checkout: Path) -> None:
    notes = noted(checkout)
    (checkout / "data" / "derived" / "chapter10" / "points.csv").write_text("device,workload\n", encoding="utf-8")
    moved = stale(notes)
    assert "analysis/chapter10/explorer" in moved
    assert moved <= analyses_of("chapter10")


def test_a_lost_widget_is_made_again(checkout: Path) -> None:
    notes = noted(checkout)
    (checkout / "book" / "widgets" / "chapter10_explorer.html").unlink()
    assert stale(notes) == {"analysis/chapter10/explorer"}


def test_a_changed_record_runs_the_arms_of_its_lab(checkout: Path) -> None:
    notes = noted(checkout)
    record = next((checkout / "data" / "runs").glob("vllm-*/cpu-smollm2/ngram-k8/*/cell.json"))
    text = record.read_text(encoding="utf-8")
    record.unlink()
    record.write_text(text + "\n", encoding="utf-8")
    moved = stale(notes)
    assert {name for name in moved if name.startswith("runs/")} == {
        f"runs/cpu-smollm2/{arm}" for arm in labs.load("cpu-smollm2").arms
    }, "which source is shown is decided over the whole lab"


def test_new_versions_run_everything(checkout: Path) -> None:
    notes = noted(checkout)
    (checkout / "constraints.txt").write_text("numpy==3.0\n", encoding="utf-8")
    assert len(stale(notes)) == len(every_page())


def test_an_arm_without_records_has_no_page_and_a_new_lab_has_one_for_each_arm(checkout: Path) -> None:
    shutil.rmtree(next((checkout / "data" / "runs").glob("vllm-*")) / "cpu-smollm2" / "ngram-k8")
    assert "runs/cpu-smollm2/ngram-k8" not in {page.name for page in pages.runs()}
    shutil.copytree(checkout / "labs" / "lab09", checkout / "labs" / "another")
    (checkout / "labs" / "another" / "book.yml").unlink()
    made = [page for page in every_page() if "/another/" in page.name]
    assert [page.name for page in made[:2]] == ["runs/another/baseline", "runs/another/draft-1b-k3"]
    assert len(made) == len(labs.load("lab09").arms) + len(shelf.QUESTIONS)
    assert made[0].title == "another: baseline"
    text = contents.with_notebooks(contents.file().read_text(encoding="utf-8"), every_page())
    assert '          - file: runs/another/baseline\n            title: "another: baseline"\n' in text


def test_a_mistake_in_a_lab_s_part_of_the_book_is_named(checkout: Path) -> None:
    file = checkout / "labs" / "lab09" / "book.yml"
    file.write_text("also: [publisched]\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"book\.yml: also: no template 'publisched'; notebooks/lab holds acceptance"):
        pages.analyses()
    file.write_text("chapters: nowhere\n", encoding="utf-8")
    with pytest.raises(UserError, match="chapters: no folder 'nowhere' in book/"):
        pages.analyses()
    with pytest.raises(UserError, match="holds no line that says where the notebooks stand"):
        contents.with_notebooks("format: jb-book\n", [])


def test_code_that_executes_notebooks_counts_and_a_comment_does_not(checkout: Path) -> None:
    page = next(page for page in pages.analyses() if page.name == "analysis/lab09/speed_up")
    template = json.loads(page.template.read_text(encoding="utf-8"))
    before = pages._code_of(page.template)
    code = next(
        cell for cell in template["cells"] if cell["cell_type"] == "code" and "import" in "".join(cell["source"])
    )
    code["source"] = ["# a remark\n", *code["source"]]
    page.template.write_text(json.dumps(template), encoding="utf-8")
    assert pages._code_of(page.template) == before
    code["source"] = ["print(1)\n", *code["source"]]
    page.template.write_text(json.dumps(template), encoding="utf-8")
    assert pages._code_of(page.template) != before
