"""Advice for the terminal, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from speclab.advice.base import Advice, Served
from speclab.findings.schedule import KEY
from speclab.findings.speeds import MIX
from speclab.lab import BASELINE


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
    yield _policy(advice)
    yield Text(f"mix: {stated(advice.mix)} of the tokens\n? neither a gain nor a loss against the baseline is shown\n")
    yield Text("Where to switch", style="bold")
    for part in advice.parts:
        for change in part.changes:
            yield Text(f"  {part.name}: {change.told}")
        if not part.changes:
            yield Text(f"  {part.name}: nowhere in the measured range")
    yield Text()
    yield _tax(advice)
    yield Text()
    yield from _k(advice)
    yield Text("Servers", style="bold")
    yield from _servers(advice)
    yield Text()
    yield Text("Before you do", style="bold")
    for warned in advice.warnings:
        yield Text(f"  {warned.about}: {warned.text} [{', '.join(warned.links)}]")
    for arm, reason in advice.left_out.items():
        yield Text(f"  {arm} is not advised: {reason}")


def _policy(advice: Advice) -> Table:
    at = sorted({served.concurrency for part in advice.parts for served in part.served})
    table = _table("serve with", *map(str, at))
    for part in advice.parts:
        by = {served.concurrency: served for served in part.served}
        table.add_row(part.name, *(_served(by[each]) if each in by else "-" for each in at))
    return table


def _served(served: Served) -> str:
    speed = "" if served.arm == BASELINE else f" {served.speed_up:.2f}x"
    return f"{served.arm}{speed}{'' if served.status == 'ok' else '?'}"


def _tax(advice: Advice) -> Table:
    """One arm for everybody: what it costs each workload, least to most over the concurrencies."""
    table = _table("one arm for all costs", *(part.name for part in advice.parts))
    for arm in dict.fromkeys(row.arm for row in advice.tax):
        cells = []
        for part in advice.parts:
            costs = [row.value for row in advice.tax if (row.arm, row.workload) == (arm, part.name)]
            cells.append(f"{100 * min(costs):.0f} to {100 * max(costs):.0f}%" if costs else "-")
        table.add_row(arm, *cells)
    return table


def _k(advice: Advice) -> Iterator[RenderableType]:
    for drafter in dict.fromkeys(row.drafter for row in advice.k):
        rows = [row for row in advice.k if row.drafter == drafter]
        at = sorted({row.concurrency for row in rows})
        table = _table(f"k of {drafter}", *map(str, at))
        for workload in dict.fromkeys(row.workload for row in rows):
            by = {row.concurrency: row.k for row in rows if row.workload == workload}
            table.add_row(workload, *(str(by.get(each, "-")) for each in at))
        yield table
        wanted = advice.worth_measuring.get(drafter, ())
        yield Text(f"worth measuring: {'k = ' + ' and '.join(map(str, wanted)) if wanted else 'no other k'}\n")


def _servers(advice: Advice) -> Iterator[RenderableType]:
    """One block a command; the purposes that it serves stand above it."""
    purposes: dict[str, list[str]] = {}
    for part in advice.parts:
        for line in part.lines:
            purposes.setdefault(line.command, []).append(f"{part.name}: {line.purpose}")
    schedules = {part.name: json.dumps(part.schedule) for part in advice.parts if part.schedule is not None}
    for name, ranges in schedules.items():
        yield Text(f"  {name}: {KEY} = {ranges}" + (" (all workloads on one server)" if name == MIX else ""))
    for command, served in purposes.items():
        for purpose in served:
            yield Text(f"  # {purpose}")
        yield Text(f"  {command}")


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right")
    return table
