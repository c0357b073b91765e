"""What a sweep over a lab looks like in the terminal: the plan before, the progress meanwhile."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from speclab.engines.base import Reading
from speclab.record.schema import CellSpec
from speclab.run.plan import ArmPlan

SERVER_START_S = 45.0
"""What a server of our own is taken to need until it answers, in the estimate of a plan; real starts vary widely."""


def seconds_left(plans: Sequence[ArmPlan]) -> float:
    """Return the estimated time of what is missing, s: the cells' lengths, and the starts of servers.

    The simulator's cells take no real time worth naming, and a server that is up has been started.
    """
    total = 0.0
    for plan in plans:
        if plan.engine == "simulated":
            continue
        missing = plan.missing()
        starts = len({asked.repeat for asked in missing}) if plan.engine == "vllm" else 0
        total += sum(asked.phases.length_s for asked in missing) + starts * SERVER_START_S
    return total


def overview(plans: Sequence[ArmPlan]) -> Table:
    """Return the plan as a table: cells to run and to keep, arm by arm, and how long it will take."""
    total = seconds_left(plans)
    when = f"about {timedelta(seconds=round(total))}" if total else "seconds"
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("arm", "workloads", "concurrencies", "repeats", "to run", "kept", "time"):
        table.add_column(name, justify="left" if name == "arm" else "right", no_wrap=True)
    for plan in plans:
        parts = [{getattr(asked, name) for asked in plan.cells} for name in ("workload", "concurrency", "repeat")]
        missing = len(plan.missing())
        time = str(timedelta(seconds=round(seconds_left([plan])))) if total else "-"
        counts = (*map(len, parts), missing, len(plan.cells) - missing)
        table.add_row(plan.arm.arm, *map(str, counts), time)
    cells = sum(len(plan.missing()) for plan in plans)
    table.caption = f"{cells} cells to run on {plans[0].engine} ({plans[0].cells[0].device}): {when}"
    table.caption_justify = "left"
    return table


class Bar:
    """One line: which cell, how fast it goes, and how long the sweep still takes."""

    def __init__(self, plans: Sequence[ArmPlan], console: Console) -> None:
        missing = [asked for plan in plans for asked in plan.missing()]
        self.kept = sum(len(plan.cells) for plan in plans) - len(missing)
        self.ran = 0
        self._console = console
        self._cells = len(missing)
        self._seconds_done = 0.0
        self._seconds = sum(asked.phases.length_s for asked in missing) or 1.0
        self._began_s = time.monotonic()
        self._last: tuple[CellSpec, Reading] | None = None
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), TimeRemainingColumn())
        self._progress = Progress(*columns, console=console)
        self._task = self._progress.add_task("", total=self._seconds)

    def __enter__(self) -> Self:
        self._progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.__exit__(kind, error, trace)

    def advance(self, asked: CellSpec, elapsed_s: float, reading: Reading | None) -> None:
        """Show how far a cell is; `reading` is None at its end (`speclab.run.Progress`)."""
        if reading is None:
            self.ran += 1
            self._seconds_done += asked.phases.length_s
            if not self._console.is_terminal:  # a log has no moving line: one for each cell
                self._console.print(f"{self._name(asked)}, {self._left()} left", highlight=False, markup=False)
        elapsed_s = 0.0 if reading is None else elapsed_s
        text = f"{self._name(asked, reading is not None)}{self._rate(asked, reading)}"
        self._progress.update(self._task, description=text, completed=self._seconds_done + elapsed_s)

    def _name(self, asked: CellSpec, begun: bool = False) -> str:
        place = f"{asked.arm} {asked.workload} {asked.concurrency} in flight"
        return f"[{self.ran + begun}/{self._cells}] {place}"

    def _left(self) -> str:
        pace = (time.monotonic() - self._began_s) / self._seconds_done  # the starts of servers are in it
        return str(timedelta(seconds=round(pace * (self._seconds - self._seconds_done))))

    def _rate(self, asked: CellSpec, reading: Reading | None) -> str:
        before, self._last = self._last, (asked, reading) if reading is not None else None
        if before is None or reading is None or before[0] != asked:
            return ""
        then, now = before[1], reading
        if then.generation_tokens is None or now.generation_tokens is None or now.at_s <= then.at_s:
            return ""
        return f" {(now.generation_tokens - then.generation_tokens) / (now.at_s - then.at_s):,.0f} tok/s"
