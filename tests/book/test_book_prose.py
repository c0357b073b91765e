"""No result is typed into prose, and no claim either: both come from notebooks, on whatever machine the lab was run."""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path

import pytest

from speclab import paths
from speclab.book import lab_source, pasted, sources
from speclab.book.follow import Followed, follow
from speclab.config import read_yaml

BOOK = paths.book()
LABS = lab_source.read(BOOK)
MEASURED = "measured (vLLM 9.9, NVIDIA H100 80GB HBM3)"
STATES = {
    "committed": LABS,
    "measured": {
        name: lab.model_copy(update={"source": MEASURED, "kind": "measured", "engine": "vllm", "strict": False})
        for name, lab in LABS.items()
    },
}
"""The labs as they are here, and as they are once their simulated ones have been run on a machine."""

PARTS = ("lab", "cpu", "model")
CHAPTERS = [BOOK / "index.md", *sorted(file for part in PARTS for file in (BOOK / part).glob("*.md"))]
PAGES = [file for file in sorted(BOOK.rglob("*.md")) if "_build" not in file.parts]
OF_A_LAB = [file for file in PAGES if lab_source.owner(LABS, file.relative_to(BOOK).as_posix())]
MODEL = [
    BOOK / "model" / f"{name}.md" for name in read_yaml(paths.root() / "notebooks" / "chapter10" / "group.yml")["pages"]
]

QUOTED = re.compile(r"\{(?:glue:text|badge)\}`([^`:]+\.ipynb)::([^`:]+)")
NOT_PROSE = re.compile(
    r"```.*?```|\$\$.*?\$\$|\$[^$]*\$|\{[\w:]+\}`[^`]*`|`[^`]*`|\]\([^)]*\)|:::\{[\w-]+\} \S+\.svg|^:\w+:.*?$",
    re.S | re.M,
)
NAMES = re.compile(
    r"theorems? 3\.\d+( and 3\.\d+)?|(Llama|Python) \d(\.\d+)?( \dB| \d\.\d B)?|EAGLE-3|Lab 9|[AHB]\d00s?"
    r"|vllm#\d+|SmolLM2-135M|k=\d|\dB|\d GB"
)
RESULT = re.compile(r"\d+\.\d+|\d+(\.\d+)? ?(%|percent|ms|tok/s|x\b)|\d{3,}")
SETTINGS = {"256", "128", "164", "95%", "512", "2048"}
"""Concurrencies, batches and contexts, the problems of HumanEval, the level of intervals: what was asked."""


@cache
def as_read(page: Path, state: str) -> Followed:
    return follow(page.read_text(encoding="utf-8"), page, BOOK, STATES[state])


def named(file: Path) -> str:
    return file.relative_to(BOOK).with_suffix("").as_posix()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_no_committed_page_quotes_a_figure_that_is_not_there(page: Path) -> None:
    read = as_read(page, "committed")
    assert read.problems == []
    gone = [
        f"{notebook}::{key}"
        for notebook, key in QUOTED.findall(read.text)
        if key not in pasted.read((page.parent / notebook).resolve())
    ]
    assert gone == []


def test_the_committed_sources_are_those_of_the_labs() -> None:
    assert sources.of_labs() == LABS
    assert all(lab.strict for lab in LABS.values())


@pytest.mark.parametrize("page", OF_A_LAB, ids=named)
def test_no_page_of_a_measured_lab_calls_it_simulated(page: Path) -> None:
    read = as_read(page, "measured")
    assert read.problems == []
    assert "simulat" not in read.text.lower()
    assert not re.search(r"built in\b|\bis assumed|\bour model\b|one seed", read.text, re.I)


def test_pages_of_a_simulated_lab_say_so() -> None:
    said = [page for page in OF_A_LAB if "simulat" in as_read(page, "committed").text.lower()]
    assert len(said) >= 8


def test_the_front_page_names_the_machine_of_a_measured_lab() -> None:
    page = BOOK / "index.md"
    assert "a simulated H100" in as_read(page, "committed").text
    read = as_read(page, "measured").text
    assert "on NVIDIA H100 80GB HBM3, and beside it" in read
    assert "a simulated H100" not in read
    assert "not here yet" not in read


@pytest.mark.parametrize(
    ("top", "title"), [(0.93, "# The speed-up disappears"), (1.31, "# The speed-up over the load")]
)
def test_a_title_that_claims_a_result_follows_the_result(tmp_path: Path, top: float, title: str) -> None:
    name = Path("analysis") / "lab09" / "speed_up.ipynb"
    (tmp_path / name).parent.mkdir(parents=True)
    text = (BOOK / name).read_text(encoding="utf-8")
    was = pasted.read(BOOK / name)["highest_at_top"]
    assert str(was) in text
    (tmp_path / name).write_text(text.replace(str(was), str(top)), encoding="utf-8")
    (tmp_path / "lab").mkdir()
    page = Path(shutil.copy(BOOK / "lab" / "speed_up.md", tmp_path / "lab"))
    read = follow(page.read_text(encoding="utf-8"), page, tmp_path, STATES["measured"])
    assert read.text.splitlines()[0] == title
    assert ("no arm on any workload is faster" in read.text) is (top < 1)


def typed_results(text: str) -> list[str]:
    prose = NAMES.sub("", NOT_PROSE.sub("", text))
    return [match.group() for match in RESULT.finditer(prose) if match.group() not in SETTINGS]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("chapter", CHAPTERS, ids=named)
def test_no_result_is_typed_into_a_chapter(chapter: Path, state: str) -> None:
    assert typed_results(as_read(chapter, state).text.replace("NVIDIA H100 80GB HBM3", "")) == []


@pytest.mark.parametrize(
    "typed", ["It reached 2.27 times.", "It took 7 ms.", "The loss is 10 percent.", "17,753 or 17753 tok/s"]
)
def test_a_typed_result_is_found(typed: str) -> None:
    assert typed_results(typed)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=named)
def test_every_figure_and_table_of_a_chapter_says_where_it_is_from(chapter: Path) -> None:
    text = chapter.read_text(encoding="utf-8")
    for block in re.findall(r":::\{(?:figure|csv-table)\}.*?:::", text, re.S):
        assert "{badge}" in block, block.splitlines()[0]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("chapter", [file for file in CHAPTERS if file.stem != "index"], ids=named)
def test_a_chapter_opens_with_its_answer_and_ends_with_its_limits_and_its_command(chapter: Path, state: str) -> None:
    text = as_read(chapter, state).text
    paragraphs = text.split("\n\n")
    assert paragraphs[1].startswith("**")
    assert "## What this does not show" in text
    assert "papermill --engine speclab" in paragraphs[-1]


@pytest.mark.parametrize("chapter", MODEL, ids=named)
def test_a_chapter_on_the_model_says_that_nothing_is_measured_and_where_it_is(chapter: Path) -> None:
    text = chapter.read_text(encoding="utf-8")
    (said,) = [
        paragraph for paragraph in text.split("\n\n") if paragraph.startswith("Nothing on this page is measured")
    ]
    assert "{doc}`../cpu/" in said


@pytest.mark.parametrize("chapter", MODEL, ids=named)
def test_every_piece_of_html_in_a_chapter_says_where_it_is_from(chapter: Path) -> None:
    for name in re.findall(r":::\{raw\} html\n:file: (\S+)", chapter.read_text(encoding="utf-8")):
        piece = (chapter.parent / name).read_text(encoding="utf-8")
        assert piece.count('<span class="source-badge source-simulated">') >= 1
        assert piece.count("<table") <= piece.count("source-badge")
