"""The values that an executed notebook pasted, read from its file."""

from __future__ import annotations

import ast
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from speclab.book.glue import PREFIX

Pasted = dict[str, int | float | str]


def read(notebook: Path) -> Pasted:
    """Return the pasted values of a notebook by name; none if it is not there."""
    if not notebook.is_file():
        return {}
    state = notebook.stat()
    return _read(notebook, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=64)
def _read(notebook: Path, modified: int, size: int) -> Pasted:
    content: dict[str, Any] = json.loads(notebook.read_text(encoding="utf-8"))
    outputs = [output for cell in content["cells"] for output in cell.get("outputs", [])]
    return {
        output["metadata"]["scrapbook"]["name"]: ast.literal_eval("".join(output["data"][f"{PREFIX}text/plain"]))
        for output in outputs
        if "scrapbook" in output.get("metadata", {})
    }
