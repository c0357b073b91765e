"""No result is typed into prose: it comes from a notebook, through ``{glue:text}``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from speclab import paths

CHAPTERS = sorted(
    [paths.book() / "index.md", *(paths.book() / "lab").glob("*.md"), *(paths.book() / "cpu").glob("*.md")]
)

NOT_PROSE = re.compile(
    r"```.*?```|\$\$.*?\$\$|\$[^$]*\$|\{[\w:]+\}`[^`]*`|`[^`]*`|\]\([^)]*\)|:::\{[\w-]+\} \S+\.svg|^:\w+:.*?$",
    re.S | re.M,
)
NAMES = re.compile(
    r"(Llama|Python) \d(\.\d+)?( \dB| \d\.\d B)?|EAGLE-3|Lab 9|H100s?|vllm#\d+|SmolLM2-135M|k=\d|\dB|\d GB"
)
RESULT = re.compile(r"\d+\.\d+|\d+(\.\d+)? ?(%|percent|ms|tok/s|x\b)|\d{3,}")
SETTINGS = {"256", "128", "164", "95%"}
"""Concurrencies of the lab, the problems of HumanEval, the level of intervals: what was asked, not what came out."""


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
