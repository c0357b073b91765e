"""A lab's results as tables in the terminal; what has not been run is a dash."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from speclab import paths
from speclab.findings.pairs import names_of
from speclab.results import Results
from speclab.results.compare import Comparison
from speclab.results.lab import NOTHING

AT_THE_LOWEST = ("tokens_per_step", "reported_acceptance_length")
"""Findings that `speed_up` shows at the lowest concurrency only."""


def lowest(results: Results, workload: str) -> float:
    """Return the lowest concurrency at which any arm's speed-up is known."""
    return min(float(name) for name in results.wide("speed_up", workload=workload).columns[1:])


def speed_up(results: Results, workload: str) -> Table | None:
    """Return the speed-up of each arm over requests in flight; None where no arm stands beside the baseline."""
    wide = results.wide("speed_up", workload=workload)
    if wide.empty:
        return None
    table = _table(workload, *wide.columns[1:], "crosses 1", "tok/step*", "counters*")
    for row in wide.to_dict("records"):
        arm = str(row.pop("arm"))
        speeds = [_shown(results, "speed_up", arm, workload, float(str(at))) for at in row]
        lengths = [_shown(results, name, arm, workload, lowest(results, workload), mark="") for name in AT_THE_LOWEST]
        table.add_row(arm, *speeds, results.crossing(arm, workload), *lengths)
    return table


def throughput(results: Results, workload: str) -> Table | None:
    """Return tokens per second of each arm over requests in flight, with a ``!`` behind those that failed a check.

    None where the workload has not been run.
    """
    wide = results.wide("system_throughput", workload=workload)
    if wide.empty:
        return None
    table = _table(workload, *wide.columns[1:])
    written = results.written("system_throughput", form="{:,.0f}", workload=workload)
    for row in written.to_dict("records"):
        table.add_row(*("-" if text == NOTHING else str(text) for text in row.values()))
    return table


def failures(cells: pd.DataFrame) -> list[str]:
    """Return one line for each arm with failed cells: how many, and the first one's reason."""
    failed = cells[cells["status"] == "failed"]
    lines = []
    for arm, of_arm in failed.groupby("arm", sort=False):
        first = of_arm.iloc[0]
        many = f"{len(of_arm)} of {(cells['arm'] == arm).sum()} cells failed"
        lines.append(f"{arm}: {many}; the first, {first['workload']} {first['concurrency']}: {first['failure']}")
    return lines


def failed_checks(cells: pd.DataFrame) -> list[str]:
    """Return one line for each arm and check that FAILs: in how many of its cells, and the first ones."""
    failing = cells.assign(check=cells["failed_checks"].map(names_of)).explode("check").dropna(subset="check")
    lines = []
    for (arm, check), of_check in failing.groupby(["arm", "check"], sort=False):
        places = [f"{row['workload']} {row['concurrency']} r{row['repeat']}" for row in of_check.to_dict("records")]
        more = f" and {len(places) - FIRST} more" if len(places) > FIRST else ""
        lines.append(
            f"{arm}: {check} in {len(places)} of {(cells['arm'] == arm).sum()}: {', '.join(places[:FIRST])}{more}"
        )
    return lines


FIRST = 3
"""Cells that a line of `failed_checks` names."""

STYLES = {"FAIL": "bold red", "WARN": "yellow", "PASS": "green"}

MOST_LINES = 40
"""Rows of cells that `check_report` prints; the rest is counted (and is in the JSON)."""


def check_report(table: pd.DataFrame) -> RenderableType:
    """Return what did not pass as a table, the lab's own checks first, and how many of each check did."""
    bad = table[table["verdict"] != "PASS"]
    shown = pd.concat([bad[bad["verdict"] == verdict] for verdict in ("FAIL", "WARN")])
    shown = shown.sort_values("scope", key=lambda scope: scope != "lab", kind="stable")
    rows = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for row in shown.head(MOST_LINES).to_dict("records"):
        reason = Text(str(row["reason"]))
        if row["remedy"]:
            reason.append(f" → {row['remedy']}", style="italic")
        rows.add_row(
            Text(str(row["verdict"]), style=STYLES[str(row["verdict"])]), _place(row), str(row["check"]), reason
        )
    counted = _table("check", "PASS", "WARN", "FAIL")
    for check, verdicts in table.groupby("check", sort=False)["verdict"]:
        counted.add_row(str(check), *(str(int((verdicts == verdict).sum())) for verdict in ("PASS", "WARN", "FAIL")))
    more = [f"and {len(shown) - MOST_LINES} more: --json has all", ""] if len(shown) > MOST_LINES else [""]
    return Group(rows, *more, counted)


def _place(row: Mapping[Hashable, Any]) -> str:
    parts = [str(row[name]) for name in ("arm", "workload") if isinstance(row[name], str)]
    parts += [f"{row['concurrency']:g}"] if pd.notna(row["concurrency"]) else []
    parts += [f"r{row['repeat']:g}"] if pd.notna(row["repeat"]) else []
    return " ".join(parts) or "the lab"


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, no_wrap=True, justify="right")
    return table


def _shown(results: Results, finding: str, arm: str, workload: str, concurrency: float, *, mark: str = "!") -> str:
    try:
        row = results.row(finding, arm=arm, workload=workload, concurrency=concurrency)
    except LookupError:  # not run there
        return "-"
    return "-" if pd.isna(row["value"]) else f"{row['value']:.2f}{'' if row['status'] == 'ok' else mark}"


def comparison(compared: Comparison) -> list[Table | str]:
    """Return two runs' comparison as blocks: what changed, each arm as a whole, the throughput of each cell."""
    blocks: list[Table | str] = [
        f"A  {paths.shown(compared.a.folder)}  {compared.a.tables.source}",
        f"B  {paths.shown(compared.b.folder)}  {compared.b.tables.source}",
        "\nwhat changed" if len(compared.changed) else "\nnothing that is recorded changed",
    ]
    for row in compared.changed.to_dict("records"):
        blocks.append(f"  {row['what']} ({row['arms']}): {_short(str(row['a']))} → {_short(str(row['b']))}")
    overall = _table("as a whole", "", "B over A", "")
    for row in compared.overall.to_dict("records"):
        overall.add_row(str(row["arm"]), str(row["finding"]), _ratio(row), str(row["status"]))
    blocks += ["", overall, ""]
    in_both = compared.cells[
        (compared.cells["finding"] == "system_throughput") & compared.cells[["a", "b"]].notna().all(axis=1)
    ]
    by_cell = _table("tokens per second", "A", "B", "B over A", "")
    for row in in_both.to_dict("records"):
        place = f"{row['arm']} {row['workload']} {row['concurrency']:g}"
        by_cell.add_row(place, f"{row['a']:,.0f}", f"{row['b']:,.0f}", _ratio(row), str(row["status"]))
    blocks += [by_cell, ""]
    for finding in dict.fromkeys(compared.cells["finding"]):
        counts = ", ".join(f"{count} {status}" for status, count in compared.counted(str(finding)).items())
        blocks.append(f"{finding}: {counts}")
    return [*blocks, *(f"note: {note}" for note in compared.notes)]


def _ratio(row: dict[Hashable, Any] | None) -> str:
    if row is None or math.isnan(row["ratio"]):
        return "-"
    interval = "" if math.isnan(row["low"]) else f" [{row['low']:.3f}, {row['high']:.3f}]"
    return f"{row['ratio']:.3f}{interval}"


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
