"""Functions of Python's standard library, as prompts."""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import dedent

LONGEST = 1200
"""Most characters of a function; a longer one would have too many tokens anyway."""
SKIPPED = ("test", "idlelib", "lib2to3", "site-packages", "turtledemo", "ensurepip", "encodings")


@dataclass(frozen=True, slots=True)
class LibraryFunction:
    """A function cut after its docstring."""

    stub: str
    body: str


@cache
def functions() -> tuple[LibraryFunction, ...]:
    """Return the documented functions and methods of the running Python's standard library, in file order."""
    root = Path(sysconfig.get_path("stdlib"))
    files = sorted(file for file in root.rglob("*.py") if not _is_skipped(file.relative_to(root)))
    return tuple(function for file in files for function in _of_file(file))


def _is_skipped(file: Path) -> bool:
    return any(part.startswith(SKIPPED) or part.startswith("_pydecimal") for part in file.parts)


def _of_file(file: Path) -> Iterator[LibraryFunction]:
    try:
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (UnicodeDecodeError, SyntaxError):
        return
    lines = text.splitlines(keepends=True)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) and len(node.body) > 1 and node.end_lineno:
            docstring_end = node.body[0].end_lineno or node.lineno
            whole = dedent("".join(lines[node.lineno - 1 : node.end_lineno]))
            if len(whole) > LONGEST:
                continue
            cut = docstring_end - node.lineno + 1
            parts = whole.splitlines(keepends=True)
            yield LibraryFunction("".join(parts[:cut]), "".join(parts[cut:]))
