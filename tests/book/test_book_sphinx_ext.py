"""A small book, built by the real command: numbers that follow their notebook, badges, formulas without scripts."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import papermill
import pytest
from chromium import Browser

FIXTURES = Path(__file__).parent / "fixtures"


def build(book: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", str(book), "-W", "-n", "--keep-going"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def execute(book: Path, value: float) -> None:
    papermill.execute_notebook(
        FIXTURES / "numbers.ipynb", book / "numbers.ipynb", {"value": value, "lab": "lab09", "label": "n-gram"},
        engine_name="speclab", progress_bar=False, cwd=book,
    )  # fmt: skip


def chapter(book: Path) -> str:
    return (book / "_build" / "html" / "chapter.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small") / "book"
    shutil.copytree(FIXTURES / "book", folder)
    execute(folder, 2.25)
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_badges_have_their_colour_also_when_their_text_is_glued(book: Path) -> None:
    found = re.findall(r'<span class="source-badge (source-\w+)">(.*?)</span>', chapter(book))
    assert [kind for kind, _ in found] == ["source-simulated", "source-published"]
    assert "simulated (h100-sxm)" in found[0][1]


def test_an_interval_and_a_name_stay_on_one_line(book: Path) -> None:
    assert (
        '<span class="whole">EAGLE-3</span></strong> may gain: 1.02 <span class="whole">(0.94–1.06)</span>.'
        in chapter(book)
    )


def test_formulas_are_mathml_and_no_page_loads_anything(book: Path) -> None:
    html = chapter(book)
    assert html.count("<math ") == 2
    assert "tex-mml-chtml" not in html
    assert re.findall(r'<(?:script|img|link|iframe)[^>]*(?:src|href)="(?:https?:)?//[^"]+"', html) == []
    assert 'class="eqno">(1)' in html


def test_no_page_holds_the_scripts_that_would_run_cells_elsewhere(book: Path) -> None:
    scripts = re.findall(r"<script(?![^>]*text/x-thebe-config).*?</script>", chapter(book), re.S)  # that one is data
    assert scripts
    assert [script for script in scripts if "thebe" in script.lower()] == []


def test_a_page_opens_without_an_error_and_asks_for_nothing_elsewhere(book: Path, browser: Browser) -> None:
    page = browser.open(book / "_build" / "html" / "chapter.html")
    # the theme warns of its own default the first time that a browser opens one of its pages
    assert [error for error in page.errors if "invalid theme mode" not in error] == []
    assert page.requests
    assert [address for address in page.requests if not address.startswith(("file:", "data:"))] == []
    page.close()


def test_page_is_named_by_its_parameters(book: Path) -> None:
    assert "<title>n-gram (lab09)" in (book / "_build" / "html" / "numbers.html").read_text(encoding="utf-8")


def test_a_chapter_follows_its_notebook(book: Path) -> None:
    assert '<span class="pasted-text">2.25</span>' in chapter(book)
    execute(book, 0.91)
    done = build(book)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '<span class="pasted-text">0.91</span>' in chapter(book)
    assert "2.25</span>" not in chapter(book)


def test_a_chapter_follows_a_caption_that_it_points_to(book: Path) -> None:
    # the chapter itself is untouched: only the notebook's heading, its name in the link, has changed
    file = book / "numbers.ipynb"
    notebook = json.loads(file.read_text(encoding="utf-8"))
    notebook["cells"][0]["source"] = ["# Another name"]
    file.write_text(json.dumps(notebook), encoding="utf-8")
    done = build(book)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Another name" in unescape(chapter(book).split("<article")[1].split("</article>")[0])


def test_a_notebook_that_no_longer_glues_fails_the_build(book: Path) -> None:
    file = book / "numbers.ipynb"
    notebook = json.loads(file.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = [output for output in cell["outputs"] if not output.get("metadata", {}).get("scrapbook")]
    file.write_text(json.dumps(notebook), encoding="utf-8")
    done = build(book)
    assert done.returncode != 0
    assert "Glue reference 'value' not found" in done.stdout + done.stderr


def test_an_edited_style_sheet_reaches_the_pages(tmp_path: Path) -> None:
    book = tmp_path / "book"
    shutil.copytree(FIXTURES / "book", book)
    execute(book, 2.25)
    (book / "_static").mkdir()
    for rule in ("p { color: red }", "p { color: blue }"):
        (book / "_static" / "lab.css").write_text(rule, encoding="utf-8")
        done = build(book)
        assert done.returncode == 0, done.stdout + done.stderr
        assert (book / "_build" / "html" / "_static" / "lab.css").read_text(encoding="utf-8") == rule


@pytest.fixture(scope="module")
def following(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("following") / "book"
    shutil.copytree(FIXTURES / "book", folder)
    execute(folder, 2.25)
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def change_sources(book: Path, **changes: object) -> None:
    file = book / "sources.json"
    labs = json.loads(file.read_text(encoding="utf-8"))
    labs["lab09"].update(changes)
    file.write_text(json.dumps(labs), encoding="utf-8")


def shown(book: Path, page: str) -> str:
    text = (book / "_build" / "html" / f"{page}.html").read_text(encoding="utf-8")
    article = text.split("<article")[1].split("</article>")[0]
    return " ".join(unescape(re.sub("<[^>]+>", "", article)).split())


# The tests below go on from each other's book: building is most of their time.


def test_a_page_shows_what_holds_and_no_more(following: Path) -> None:
    text = shown(following, "following")
    assert "Made by a model." in text
    assert "It gains, at 2.25." in text
    assert "Taken on" not in text
    assert "Warning" not in text


def test_pages_are_read_again_when_only_the_source_of_a_lab_changes(following: Path) -> None:
    change_sources(
        following,
        source="measured (vLLM 9.9, big-gpu)", kind="measured", engine="vllm", strict=False,
        problems=["Arm eagle3-k3 was not run."],
    )  # fmt: skip
    done = build(following)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Taken on big-gpu, Where it was taken." in shown(following, "following")
    assert "Made by a model." not in shown(following, "following")


def test_every_page_of_a_lab_says_what_is_wrong_with_its_results(following: Path) -> None:
    for page in ("following", "numbers"):
        assert "Warning Arm eagle3-k3 was not run." in shown(following, page)
    assert "Warning" not in shown(following, "chapter")


def test_a_claim_follows_the_value_that_decides_it(following: Path) -> None:
    file = following / "numbers.ipynb"
    file.write_text(file.read_text(encoding="utf-8").replace('"2.25"', '"0.91"'), encoding="utf-8")
    done = build(following)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "It does not gain, at 0.91." in shown(following, "following")


def test_results_that_lack_a_figure_are_shown_with_a_dash_and_a_note(following: Path) -> None:
    file = following / "numbers.ipynb"
    file.write_text(file.read_text(encoding="utf-8").replace('"name": "value"', '"name": "other"'), encoding="utf-8")
    done = build(following)
    assert done.returncode == 0, done.stdout + done.stderr
    text = shown(following, "following")
    assert "Nobody knows, at –." in text
    assert "1 figure that this page quotes is not in these results" in text
    html = (following / "_build" / "html" / "following.html").read_text(encoding="utf-8")
    assert html.count('<span class="missing-figure">–</span>') == 1


def test_the_results_that_a_book_was_written_for_must_not_lack_one(following: Path) -> None:
    change_sources(following, strict=True)
    done = build(following)
    assert done.returncode != 0
    assert "asks for numbers.ipynb::value, which no notebook has pasted" in done.stdout + done.stderr
