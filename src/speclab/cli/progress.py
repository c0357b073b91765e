"""What a sweep over a lab looks like in the terminal: the plan before, the progress meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column, Table

from speclab.engines.base import Reading
from speclab.record.schema import CellSpec
from speclab.run.plan import ArmPlan

SERVER_START_S = 45.0
"""What a server of our own is taken to need until it answers, in the estimate of a plan; real starts vary widely."""


BAR_WIDTH = 16
PLAIN_EVERY_S = 10.0
"""How often a log, which has no moving line, is told of a start that goes on."""


def seconds_left(plans: Sequence[ArmPlan]) -> float:
    """Return the estimated time of what is missing, s: the cells' lengths, and the starts of servers.

    The simulator's cells take no real time worth naming, and a server that is up has been started.
    """
    return sum(_lengths_s(plan) + _starts(plan) * SERVER_START_S for plan in plans)


def _lengths_s(plan: ArmPlan) -> float:
    return 0.0 if plan.engine == "simulated" else sum(asked.phases.length_s for asked in plan.missing())


def _starts(plan: ArmPlan) -> int:
    """Return how many servers are started for a plan: one for each repeat of which a cell is missing."""
    return len({asked.repeat for asked in plan.missing()}) if plan.engine == "vllm" else 0


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


class TimeLeft:
    """How long a sweep still takes, s, by the lengths of its cells and the starts that were seen.

    It does not follow the pace so far: that is a server's start at first and a cell's later, and what is left would
    jump between them. Only the starts to come change, to the mean of those that were.

    Parameters
    ----------
    plans : sequence of ArmPlan
        What is run.
    """

    def __init__(self, plans: Sequence[ArmPlan]):
        self._cells_s = sum(map(_lengths_s, plans))
        self._starts = sum(map(_starts, plans))
        self._seen_s: list[float] = []

    @property
    def start_s(self) -> float:
        """What a start is taken to need."""
        return sum(self._seen_s) / len(self._seen_s) if self._seen_s else SERVER_START_S

    def started(self, took_s: float) -> None:
        """Note the end of a server's start."""
        self._seen_s.append(took_s)
        self._starts = max(self._starts - 1, 0)

    def ended(self, length_s: float) -> None:
        """Note the end of a cell, however long it really took."""
        self._cells_s = max(self._cells_s - length_s, 0.0)

    def left_s(self, *, of_cell_s: float = 0.0, of_start_s: float = 0.0) -> float:
        """Return what is left where a cell, or a start, has gone on for so long."""
        of_this_start_s = min(of_start_s, self.start_s)
        return max(self._cells_s - of_cell_s, 0.0) + max(self._starts * self.start_s - of_this_start_s, 0.0)


class Bar:
    """One line: which cell, how fast it goes, and how long the sweep still takes."""

    def __init__(self, plans: Sequence[ArmPlan], console: Console) -> None:
        missing = [asked for plan in plans for asked in plan.missing()]
        self.kept = sum(len(plan.cells) for plan in plans) - len(missing)
        self.ran = 0
        self._console = console
        self._cells = len(missing)
        self._estimate = TimeLeft(plans)
        self._whole_s = self._estimate.left_s()
        self._last: tuple[CellSpec, Reading] | None = None
        self._said_s = 0.0
        columns = (TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
                   BarColumn(bar_width=BAR_WIDTH), TextColumn("{task.fields[left]}"))  # fmt: skip
        self._progress = Progress(*columns, console=console)
        self._task = self._progress.add_task("", total=self._whole_s or self._cells or 1.0, left="")

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
            self._estimate.ended(asked.phases.length_s)
            self._say(f"{self._name(asked)}{self._left(', {} left')}")
        text = f"{self._name(asked, reading is not None)}{self._rate(asked, reading)}"
        self._show(text, of_cell_s=0.0 if reading is None else elapsed_s)

    def starting(self, arm: str, elapsed_s: float, last_line: str | None) -> None:
        """Show how far a server's start is; `last_line` is None at its end (`speclab.run.arms.ArmStarting`)."""
        if last_line is None:
            self._estimate.started(elapsed_s)
            self._said_s = 0.0
            self._show(f"the start of the server of {arm} took {elapsed_s:.0f} s")
            return
        text = f"starting the server of {arm}, {elapsed_s:.0f} s so far"
        its_last = f"; its last line: {last_line}" if last_line else ""
        if elapsed_s - self._said_s >= PLAIN_EVERY_S:
            self._said_s = elapsed_s
            self._say(text + its_last)
        self._show(text + its_last.replace("; ", "\n", 1), of_start_s=elapsed_s)

    def _say(self, line: str) -> None:
        """Print a line where no line moves: into a log."""
        if not self._console.is_terminal:
            self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def _show(self, text: str, *, of_cell_s: float = 0.0, of_start_s: float = 0.0) -> None:
        left_s = self._estimate.left_s(of_cell_s=of_cell_s, of_start_s=of_start_s)
        done = self._whole_s - left_s if self._whole_s else self.ran
        left = self._left("{} left", of_cell_s=of_cell_s, of_start_s=of_start_s)
        room = max(self._console.width - len(left) - BAR_WIDTH - 4, 20)
        shown = "\n".join(line if len(line) <= room else line[: room - 1] + "…" for line in text.splitlines())
        self._progress.update(self._task, description=shown, completed=max(done, 0.0), left=left)

    def _name(self, asked: CellSpec, begun: bool = False) -> str:
        place = f"{asked.arm} {asked.workload} {asked.concurrency} in flight"
        return f"[{self.ran + begun}/{self._cells}] {place}"

    def _left(self, words: str, **gone_s: float) -> str:
        """Return how long it still takes, in words; nothing for the simulator, whose cells take no time to name."""
        return words.format(timedelta(seconds=round(self._estimate.left_s(**gone_s)))) if self._whole_s else ""

    def _rate(self, asked: CellSpec, reading: Reading | None) -> str:
        before, self._last = self._last, (asked, reading) if reading is not None else None
        if before is None or reading is None or before[0] != asked:
            return ""
        then, now = before[1], reading
        if then.generation_tokens is None or now.generation_tokens is None or now.at_s <= then.at_s:
            return ""
        return f" {(now.generation_tokens - then.generation_tokens) / (now.at_s - then.at_s):,.0f} tok/s"
