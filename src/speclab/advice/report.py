"""Advice for the terminal, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from speclab.advice import frames
from speclab.advice.base import Advice
from speclab.findings.schedule import KEY
from speclab.findings.speeds import MIX


def to_json(advice: Advice) -> str:
    """Return advice as one JSON object; null where a bound is not known."""
    return json.dumps(advice.model_dump(mode="json"), indent=1, ensure_ascii=False, allow_nan=False)


def rendered(advice: Advice) -> RenderableType:
    """Return advice as tables and sentences."""
    return Group(*_blocks(advice))


def stated(mix: dict[str, float]) -> str:
    """Return a mix in words."""
    return ", ".join(f"{share:.0%} {workload}" for workload, share in mix.items())


def _blocks(advice: Advice) -> Iterator[RenderableType]:
    yield _table(frames.policy(advice))
    if MIX not in {part.name for part in advice.parts}:
        yield Text("mix: at no load are all its parts known")
    yield Text(f"mix: {stated(advice.mix)} of the tokens\n? neither a gain nor a loss against the baseline is shown\n")
    yield Text("Where to switch", style="bold")
    for part in advice.parts:
        for change in part.changes:
            yield Text(f"  {part.name}: {change.sentence}")
        if not part.changes:
            yield Text(f"  {part.name}: nowhere in the measured range")
    for frame in (frames.regret(advice), frames.chosen_k(advice)):
        if len(frame):
            yield Text()
            yield _table(frame)
    yield Text("\nServers", style="bold")
    yield from _servers(advice)
    yield Text("\nBefore you do", style="bold")
    for warned in advice.warnings:
        yield Text(f"  {warned.about}: {warned.text} [{', '.join(warned.links)}]")
    for arm, reason in advice.left_out.items():
        yield Text(f"  {arm} is not advised: {reason}")


def _servers(advice: Advice) -> Iterator[RenderableType]:
    """One block a command; the purposes that it serves stand above it."""
    purposes: dict[str, list[str]] = {}
    for part in advice.parts:
        for line in part.lines:
            purposes.setdefault(line.command, []).append(f"{part.name}: {line.purpose}")
    for row in frames.schedules(advice).itertuples():
        yield Text(f"  {row.traffic}: {KEY} = {row.schedule}" + (" (all on one server)" if row.traffic == MIX else ""))
    for command, served in purposes.items():
        for purpose in served:
            yield Text(f"  # {purpose}")
        yield Text(f"  {command}")


def _table(frame: pd.DataFrame) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for index, name in enumerate(frame.columns):
        table.add_column(str(name), no_wrap=index == 0, justify="left" if index == 0 else "right")
    for row in frame.astype(str).to_numpy().tolist():
        table.add_row(*row)
    return table
