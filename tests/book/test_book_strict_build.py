"""The whole book, built from nothing as CI and readers do."""

from __future__ import annotations

import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml

from speclab import paths

pytestmark = pytest.mark.book

LOADS = {
    "script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src", "audio": "src",
    "object": "data", "embed": "src",
}  # fmt: skip
NO_LOADS = {"canonical", "next", "prev", "index", "search", "author", "license"}


class Loads(HTMLParser):
    """Addresses that a page loads to be read; links that a reader may follow are none."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        address = given.get(LOADS.get(tag, ""))
        if address and not NO_LOADS & set((given.get("rel") or "").split()):
            self.found.append((tag, address))


def pages(html: Path) -> list[Path]:
    """The book's pages; under _static the theme keeps templates."""
    return [page for page in html.rglob("*.html") if "_static" not in page.parts]


def loads(page: Path) -> list[tuple[str, str]]:
    parser = Loads()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser.found


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy(paths.root() / name, copy)
    ignore = shutil.ignore_patterns("_build", "conf.py")
    shutil.copytree(paths.book(), copy / "book", symlinks=True, ignore=ignore)
    shutil.copytree(paths.drafters(), copy / "data" / "drafters")  # a chapter shows the recipe
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", "book/", "-W", "-n", "--keep-going"]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return copy / "book" / "_build" / "html"


def test_every_page_of_the_toc_is_there(html: Path) -> None:
    toc = yaml.safe_load((paths.root() / "_toc.yml").read_text(encoding="utf-8"))
    names = [toc["root"]]
    waiting = [chapter for part in toc["parts"] for chapter in part["chapters"]]
    while waiting:
        chapter = waiting.pop()
        names.append(chapter["file"])
        waiting += chapter.get("sections", [])
    assert len(names) > 20
    assert [name for name in names if not (html / f"{name}.html").is_file()] == []


def test_no_page_loads_anything_from_elsewhere(html: Path) -> None:
    away = {
        (tag, address)
        for page in pages(html)
        for tag, address in loads(page)
        if address.startswith(("http:", "https:", "//"))
    }
    assert away == set()


def test_everything_that_a_page_loads_exists(html: Path) -> None:
    missing, seen = [], 0
    for page in pages(html):
        for tag, address in loads(page):
            if address.startswith(("http:", "https:", "//", "data:")):
                continue
            seen += 1
            file = (page.parent / unquote(address.split("?")[0].split("#")[0])).resolve()
            if not file.is_file():
                missing.append((page.name, tag, address))
    assert seen > 100
    assert missing == []


def test_no_formula_was_left_as_text(html: Path) -> None:
    text = (html / "appendix" / "metrics.html").read_text(encoding="utf-8")
    assert text.count("<math ") >= 10
    assert "\\frac" not in text


def test_no_directive_was_left_as_text(html: Path) -> None:
    """A fence whose caption holds a backtick is no directive, and the strict build says nothing."""
    for page in pages(html):
        text = page.read_text(encoding="utf-8")
        for directive in ("{csv-table}", "{figure}", "{list-table}", "{glue:text}", "{badge}", "{doc}"):
            assert directive not in text, f"{page.relative_to(html)} shows {directive}"
