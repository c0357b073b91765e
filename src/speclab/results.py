"""A lab's results as its readers use them: the command line, and the notebooks behind the chapters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from speclab import derived
from speclab import lab as labs
from speclab.findings import table
from speclab.lab import Lab


@dataclass(frozen=True)
class Results:
    """Everything that one lab came to on one engine.

    Attributes
    ----------
    lab : Lab
        What was run.
    tables : derived.Tables
        One row a cell, a position, a check.
    """

    lab: Lab
    tables: derived.Tables

    @property
    def source(self) -> str:
        """The badge of every number here."""
        return self.tables.source

    @cached_property
    def findings(self) -> pd.DataFrame:
        """All findings, a row each; columns as in `speclab.findings.table.COLUMNS`."""
        k_by_arm = {name: self.lab.arm(name).k for name in self.lab.arms}
        return table.findings(self.tables.cells, self.tables.positions, k_by_arm)

    def row(self, finding: str, **where: Any) -> pd.Series:
        """Return the one row of a finding that matches `where`, column by column.

        Raises
        ------
        LookupError
            There is not exactly one.
        """
        rows = self.findings[self.findings["finding"] == finding]
        for column, value in where.items():
            rows = rows[rows[column] == value]
        if len(rows) != 1:
            raise LookupError(f"{len(rows)} rows of {finding} at {where}, 1 wanted")
        return rows.iloc[0]

    def value(self, finding: str, **where: Any) -> float:
        """Return the value of a finding that was found.

        Raises
        ------
        LookupError
            There is not exactly one such row, or it has no value.
        """
        row = self.row(finding, **where)
        if row["status"] != "ok":
            raise LookupError(f"{finding} at {where} is {row['status']}")
        return float(row["value"])

    def crossing(self, arm: str, workload: str) -> str:
        """Return where an arm's speed-up falls to 1, in words that also fit when it does not."""
        row = self.row("crossover", arm=arm, workload=workload)
        if row["status"] == "ok":
            return f"{row['value']:.0f}"
        if row["status"] == "not reached":
            return f"above {row['low']:.0f}" if pd.notna(row["low"]) else f"below {row['high']:.0f}"
        return str(row["status"])

    def wide(self, finding: str, *, index: str = "arm", columns: str = "concurrency", **where: Any) -> pd.DataFrame:
        """Return a finding as a table in the lab's order: arms down and concurrencies across, unless told otherwise."""
        rows = self.findings[self.findings["finding"] == finding]
        for column, value in where.items():
            rows = rows[rows[column] == value]
        shape = rows.pivot(index=index, columns=columns, values="value")
        shape = shape.reindex(index=self._in_order(shape.index), columns=self._in_order(shape.columns))
        shape.columns = [f"{label:g}" if isinstance(label, float) else str(label) for label in shape.columns]
        return shape.reset_index()

    def _in_order(self, labels: pd.Index) -> list[Any]:
        order: dict[Any, tuple[Any, ...]] = {"arm": self.lab.arms, "workload": self.lab.workloads}
        return [label for label in order.get(labels.name, sorted(labels)) if label in labels]


def of(lab: str, engine: str | None = None, *, data: Path | None = None) -> Results:
    """Return a lab's results on one engine.

    Raises
    ------
    UserError
        The lab is unknown, or has not been run on that engine.
    """
    return Results(labs.load(lab), derived.read(lab, engine, data=data))
