"""Every command that a message of the program, the book or the files at the root name is one that there is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
import typer.main

from speclab import paths
from speclab.cli import cli

ROOT = paths.root()
PAGES = [*sorted(ROOT.glob("*.md")), ROOT / "tests" / "README.md", *sorted((ROOT / "docs").glob("*.md")),
         *(page for page in sorted((ROOT / "book").rglob("*.md")) if "_build" not in page.parts)]  # fmt: skip
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
GROUP = typer.main.get_command(cli)

CODE = re.compile(r"^```[^\n]*\n(.*?)^```|(`+)(?!`)(.+?)(?<!`)\2(?!`)", re.MULTILINE | re.DOTALL)
"""A fenced block, or a span between back-ticks."""
COMMAND = re.compile(r"(?<![\w.-])(?<!--engine )(?<!an older )(?<!from )(make|speclab)(?= +([^\n`&|#]+))")
ENGLISH = {"it", "them", "with"}
"""What follows "make" in messages where it is a word."""
HOLE = "{}"
"""What stands for a value in a message."""


def said(source: str) -> Iterator[str]:
    """Give the strings of a module: whole where they are messages, their code where they are documentation."""
    tree = ast.parse(source)
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)} - {
        id(node) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)
    }
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else HOLE for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield from code(node.value) if id(node) in documentation else (node.value,)


def code(page: str) -> Iterator[str]:
    return (block or span for block, _, span in CODE.findall(page))


def commands(texts: Iterator[str]) -> Iterator[tuple[str, list[str]]]:
    """Give (program, words) of what looks like a command in some texts; ``make`` in a sentence is none."""
    for text in texts:
        for program, rest in COMMAND.findall(text):
            words = rest.split()
            if program == "speclab" or words[0].rstrip(",.:;") not in ENGLISH:
                yield program, words


def unknown(program: str, words: list[str]) -> str | None:
    """Return what is wrong with a command, or None."""
    if program == "make":
        name = re.match(rf"(?:{re.escape(HOLE)}|[\w.-])*", words[0])[0].rstrip(".")  # type: ignore[index]
        pattern = re.compile(re.escape(name).replace(re.escape(HOLE), "[a-z-]+"))
        return None if "=" in words[0] or any(map(pattern.fullmatch, TARGETS)) else f"make {name}"
    command, path = GROUP, ["speclab"]
    for word in words:
        if not hasattr(command, "commands") or not re.match(r"[a-z]", word):
            break
        path.append(re.match(r"[\w-]+", word)[0])  # type: ignore[index]
        command = command.commands.get(path[-1])
        if command is None:
            return " ".join(path)
    options = set(chain.from_iterable((*param.opts, *param.secondary_opts) for param in command.params)) | {"--help"}
    named = {option for word in words for option in re.findall(r"^\[?(--[a-z][a-z-]*)", word)}
    return f"{' '.join(path)} {min(named - options)}" if named - options else None


def test_there_are_commands_to_look_at() -> None:
    assert {"book", "test", "install", "lock-gpu"} <= TARGETS
    found = [" ".join((program, words[0])) for file in SOURCES for program, words in commands(said(file.read_text()))]
    assert {"make install-cpu", "speclab weights"} <= set(found)
    assert {"speclab text-check"} <= set(found)  # the message begins "make it: "
    assert unknown("make", [".venv-cpu"]) == "make .venv-cpu"
    assert unknown("make", ["install-{}"]) is None
    assert unknown("speclab", ["drafter", "grow"]) == "speclab drafter grow"
    assert unknown("speclab", ["run", "lab09", "--all"]) == "speclab run --all"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_commands_that_there_are(page: Path) -> None:
    found = [unknown(*command) for command in commands(code(page.read_text(encoding="utf-8")))]
    assert [wrong for wrong in found if wrong] == []


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT / "src")))
def test_a_message_names_commands_that_there_are(file: Path) -> None:
    found = [unknown(*command) for command in commands(said(file.read_text(encoding="utf-8")))]
    assert [wrong for wrong in found if wrong] == []
