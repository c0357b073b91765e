"""Diagnoses as a table for the terminal: what is wrong in rows, what is fine in one line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from speclab.doctor.base import LEVELS, Diagnosis, Level

STYLES: dict[Level, str] = {
    "will fail": "bold red",
    "will mislead": "yellow",
    "not known here": "cyan",
    "fine": "green",
}


def rendered(diagnoses: Sequence[Diagnosis]) -> RenderableType:
    """Return one block for every arm, and one for each arm that differs, each worst first."""
    groups: dict[str | None, list[Diagnosis]] = {}
    for diagnosis in diagnoses:
        groups.setdefault(diagnosis.arm, []).append(diagnosis)
    return Group(*(part for arm, of_arm in groups.items() for part in _block(arm, of_arm)))


def counted(diagnoses: Sequence[Diagnosis]) -> str:
    """Return how many diagnoses there are of each level, the worst first."""
    counts = {level: sum(diagnosis.level == level for diagnosis in diagnoses) for level in LEVELS}
    return " · ".join(f"{count} {level}" for level, count in counts.items() if count)


def to_json(diagnoses: Sequence[Diagnosis]) -> str:
    """Return the diagnoses as one JSON list of flat objects."""
    return json.dumps([diagnosis.model_dump() for diagnosis in diagnoses], indent=1, ensure_ascii=False)


def _block(arm: str | None, diagnoses: Sequence[Diagnosis]) -> Iterator[RenderableType]:
    yield Text(arm or "every arm", style="bold")
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, min_width=14)
    table.add_column(max_width=16, overflow="fold")
    table.add_column(overflow="fold")
    for diagnosis in diagnoses:
        if diagnosis.level != "fine":
            table.add_row(Text(diagnosis.level, style=STYLES[diagnosis.level]), diagnosis.rule, _text(diagnosis))
    fine = [diagnosis.rule for diagnosis in diagnoses if diagnosis.level == "fine"]
    if fine:
        table.add_row(Text("fine", style=STYLES["fine"]), "", Text(", ".join(fine)))
    yield table
    yield ""


def _text(diagnosis: Diagnosis) -> Text:
    text = Text(diagnosis.found)
    if diagnosis.remedy:
        text.append(f" → {diagnosis.remedy}", style="italic")
    if diagnosis.cites:
        text.append(f"  [{', '.join(diagnosis.cites)}]", style="dim")
    return text
