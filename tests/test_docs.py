"""The files at the root and in docs/ name paths and definitions that there are (commands: test_cli_named)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from speclab import paths

ROOT = paths.root()
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "tests/README.md")]
PAGES += sorted((ROOT / "docs").glob("*.md"))
MOST_WORDS = 1500

SUFFIXES = "csv|ipynb|js|json|md|py|toml|txt|yml"
PATH = re.compile(rf"(?:[\w.-]+/)+(?:[\w.-]+\.(?:{SUFFIXES}))?|[\w-]+\.(?:{SUFFIXES})")
MADE = (".build/", "OUT.ipynb", "RECORD.json", "FILE.yml")
"""Paths that a command makes or a reader chooses."""
OF_ANY_FOLDER = ("lab.yml", "book.yml", "group.yml", "config.json", "tried.csv", "conftest.py")
"""Names that stand for such a file wherever it lies."""


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def spans(page: Path) -> list[str]:
    """Return what stands between back-ticks in a page, lines joined, fenced blocks left out."""
    text = re.sub(r"^```.*?^```", "", text_of(page), flags=re.MULTILINE | re.DOTALL)
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", text)]


def found(path: str) -> Path | None:
    """Return what a path of a page stands for: it starts at the root, or where the rooms are."""
    for place in (ROOT / path, ROOT / "src" / "speclab" / path):
        if place.is_dir() if path.endswith("/") else place.is_file():
            return place
    return None


def test_what_is_looked_for_is_found() -> None:
    assert found("roofline/")
    assert found("labs/lab09/lab.yml")
    assert not found("model/")
    assert len([span for page in PAGES for span in spans(page) if PATH.fullmatch(span)]) > 80


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_what_there_is(page: Path) -> None:
    named = [span for span in spans(page) if PATH.fullmatch(span) and not span.startswith(MADE)]
    assert [path for path in named if path not in OF_ANY_FOLDER and not found(path)] == []
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", text_of(page))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_name_in_a_file_is_defined_there(page: Path) -> None:
    for name, file in re.findall(r"`(\w+)`\s+in\s+`([\w/]+\.py)`", text_of(page)):
        module = found(file)
        assert module is not None, file
        assert re.search(rf"^(?:class |def )?{name}\b", text_of(module), re.MULTILINE), f"no {name} in {file}"


def test_contributing_stays_short() -> None:
    assert len(text_of(ROOT / "CONTRIBUTING.md").split()) <= MOST_WORDS
