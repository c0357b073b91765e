"""No result is typed into prose: it comes from a notebook, through ``{glue:text}``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from speclab import paths
from speclab.book import pages

PARTS = ("lab", "cpu", "model")
CHAPTERS = [paths.book() / "index.md", *sorted(file for part in PARTS for file in (paths.book() / part).glob("*.md"))]
MODEL = [paths.book() / "model" / f"{name}.md" for name in pages.CHAPTER10]

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


def typed_results(text: str) -> list[str]:
    prose = NAMES.sub("", NOT_PROSE.sub("", text))
    return [match.group() for match in RESULT.finditer(prose) if match.group() not in SETTINGS]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda file: file.stem)
def test_no_result_is_typed_into_a_chapter(chapter: Path) -> None:
    assert typed_results(chapter.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "typed", ["It reached 2.27 times.", "It took 7 ms.", "The loss is 10 percent.", "17,753 or 17753 tok/s"]
)
def test_a_typed_result_is_found(typed: str) -> None:
    assert typed_results(typed)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda file: file.stem)
def test_every_figure_and_table_of_a_chapter_says_where_it_is_from(chapter: Path) -> None:
    text = chapter.read_text(encoding="utf-8")
    for block in re.findall(r":::\{(?:figure|csv-table)\}.*?:::", text, re.S):
        assert "{badge}" in block, block.splitlines()[0]


@pytest.mark.parametrize(
    "chapter", [file for file in CHAPTERS if file.stem != "index"], ids=lambda file: f"{file.parent.name}/{file.stem}"
)
def test_a_chapter_opens_with_its_answer_and_ends_with_its_limits_and_its_command(chapter: Path) -> None:
    text = chapter.read_text(encoding="utf-8")
    paragraphs = text.split("\n\n")
    assert paragraphs[1].startswith("**")
    assert "## What this does not show" in text
    assert "papermill --engine speclab" in paragraphs[-1]


@pytest.mark.parametrize("chapter", MODEL, ids=lambda file: file.stem)
def test_a_chapter_on_the_model_says_that_nothing_is_measured_and_where_it_is(chapter: Path) -> None:
    text = chapter.read_text(encoding="utf-8")
    (said,) = [
        paragraph for paragraph in text.split("\n\n") if paragraph.startswith("Nothing on this page is measured")
    ]
    assert "{doc}`../cpu/" in said


@pytest.mark.parametrize("chapter", MODEL, ids=lambda file: file.stem)
def test_every_piece_of_html_in_a_chapter_says_where_it_is_from(chapter: Path) -> None:
    for name in re.findall(r":::\{raw\} html\n:file: (\S+)", chapter.read_text(encoding="utf-8")):
        piece = (chapter.parent / name).read_text(encoding="utf-8")
        assert piece.count('<span class="source-badge source-simulated">') >= 1
        assert piece.count("<table") <= piece.count("source-badge")
