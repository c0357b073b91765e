"""A template's cells run in this process, and what they show caught."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from speclab import figures, paths
from speclab.book import glue, table

TEMPLATES = paths.root() / "notebooks" / "lab"


def executed(template: str, lab: str, patch: pytest.MonkeyPatch) -> tuple[list[str], dict[str, object]]:
    """Return what a template of ``notebooks/lab`` shows of a measured lab, and what it pastes for the chapters."""
    shown: list[str] = []
    pasted: dict[str, object] = {}
    show = table.html
    patch.setattr(figures, "keep", lambda figure, stem, **words: shown.append(" ".join([stem, *words.values()])))
    patch.setattr(table, "keep", lambda frame, stem: shown.append(frame.to_csv(na_rep="nan")))
    patch.setattr(table, "show", lambda *given, **how: shown.append(show(*given, **how)))
    patch.setattr(glue, "paste", lambda stem, value: pasted.update({stem: glue._plain(value)}))
    patch.setattr("IPython.display.display", lambda *_: None)
    scope: dict[str, Any] = {}
    for cell in json.loads(Path(TEMPLATES / f"{template}.ipynb").read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            is_parameters = "parameters" in cell["metadata"].get("tags", [])
            exec(f"lab, engine = {lab!r}, 'vllm'" if is_parameters else "".join(cell["source"]), scope)
    return shown, pasted
