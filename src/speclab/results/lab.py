"""A lab's results as its readers use them: the command line, and the notebooks behind the chapters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from speclab import lab as labs
from speclab import paths
from speclab.cache import keys
from speclab.cache.code import package_source
from speclab.cache.store import kept
from speclab.errors import UserError
from speclab.findings import between, check_report, choose_k, long_table, sentences
from speclab.findings.intervals import Draws
from speclab.findings.pairs import OK, state
from speclab.findings.places import Key
from speclab.findings.tokens_per_step_by_k import BIAS_COLUMNS, Drafter, bias, drafters
from speclab.lab import Lab
from speclab.metrics.replay import by_k
from speclab.probe import record as probes
from speclab.probe.record import ProbeRecord
from speclab.record import models as weights
from speclab.record import store
from speclab.record import text as texts
from speclab.record.schema import CellRecord
from speclab.record.text import TextRecord
from speclab.results import lab_tables, source

NOTHING = "–"


@dataclass(frozen=True)
class Results:
    """Everything that one lab came to on one engine.

    Attributes
    ----------
    lab : Lab
        What was run.
    tables : lab_tables.Tables
        One row a cell, a position, a check.
    """

    lab: Lab
    tables: lab_tables.Tables

    @property
    def source(self) -> str:
        """The badge of every number here."""
        return self.tables.source

    @cached_property
    def findings(self) -> pd.DataFrame:
        """All findings, a row each; columns as in `speclab.findings.long_table.COLUMNS`."""
        return long_table.joined(self._with_draws[0], choose_k.rows(self.k_curves))

    @cached_property
    def _with_draws(self) -> tuple[pd.DataFrame, dict[Key, Draws]]:
        def made() -> tuple[pd.DataFrame, dict[Key, Draws]]:
            k_by_arm, tables = {name: self.lab.arm(name).k for name in self.lab.arms}, self.tables
            return long_table.with_draws(tables.cells, tables.positions, k_by_arm, tables.answers, tables.blocks)

        return kept(f"findings-{self.lab.name}", self._key("speclab.findings.long_table.with_draws"), made)

    def _key(self, code: str) -> str:
        """Return the key of what some code makes of this lab's arms and tables."""
        return keys.joined(package_source().sha256(code), keys.of_arithmetic(), self._key_of_data)

    @cached_property
    def _key_of_data(self) -> str:
        arms = [self.lab.arm(name).model_dump(mode="json") for name in self.lab.arms]
        tables = [getattr(self.tables, kind) for kind in lab_tables.KINDS]
        return keys.joined(keys.of_values(arms), keys.of_tables(*tables))

    def draws(self, finding: str, *, arm: str, workload: str, concurrency: float) -> Draws | None:
        """Return resampled values of a finding at one place, shape (draws,), in its own unit; None if it has none.

        Two arms at the same place were resampled together: the quotient of their draws is the draw of their quotient.
        """
        drawn = self._with_draws[1]
        keys = [(finding, source, arm, workload, concurrency) for source in self.tables.cells["source"].unique()]
        return next((drawn[key] for key in keys if key in drawn), None)

    @cached_property
    def drafters(self) -> list[Drafter]:
        """The lab's drafters: arms that differ in nothing but k."""
        return drafters([self.lab.arm(name) for name in self.lab.arms])

    @cached_property
    def k_curves(self) -> pd.DataFrame:
        """Milliseconds per token at each k of each drafter; columns as in `speclab.findings.choose_k.COLUMNS`."""
        return kept(f"k-curves-{self.lab.name}", self._key("speclab.results.lab.Results"), self._made_k_curves)

    def _made_k_curves(self) -> pd.DataFrame:
        curves = [choose_k.curves(self._with_draws[0], self._replays, drafter, self.draws) for drafter in self.drafters]
        filled = [table for table in curves if not table.empty]
        return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=choose_k.COLUMNS)

    @cached_property
    def k_bias(self) -> pd.DataFrame:
        """A long draft cut and replayed, beside a shorter one that ran (`tokens_per_step_by_k.bias`)."""
        tables = [bias(self._replays, drafter) for drafter in self.drafters] if len(self._replays) else []
        filled = [table for table in tables if not table.empty]
        return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=BIAS_COLUMNS)

    @cached_property
    def _replays(self) -> pd.DataFrame:
        """The replayed answers of cells whose text passed its checks."""
        if self.tables.replays.empty:
            return self.tables.replays
        keys, cells = ["source", "arm", "workload", "concurrency", "repeat"], self.cells
        passed = cells.loc[state(cells, "tokens_per_step") == OK, keys]
        return by_k(self.tables.replays.merge(passed, on=keys, validate="many_to_one"))

    def rows(self, finding: str | list[str], **where: Any) -> pd.DataFrame:
        """Return the rows of a finding (or more) that match `where`, column by column: a value, or a list of them."""
        rows = self.findings
        for column, wanted in {"finding": finding, **where}.items():
            rows = rows[rows[column].isin(wanted if isinstance(wanted, list | tuple) else [wanted])]
        return rows

    def ok_rows(self, finding: str | list[str], **where: Any) -> pd.DataFrame:
        """Return those of `rows` that have a value which passed its checks."""
        rows = self.rows(finding, **where)
        return rows[rows["status"] == "ok"]

    def row(self, finding: str, **where: Any) -> pd.Series:
        """Return the one row of a finding that matches `where`, column by column.

        Raises
        ------
        LookupError
            There is not exactly one.
        """
        rows = self.rows(finding, **where)
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

    def crossing(self, arm: str, workload: str, *, bounds: bool = False) -> str:
        """Return where an arm's speed-up falls to 1, in words that also fit where it does not, with `bounds` or not."""
        if self.rows("crossover", arm=arm, workload=workload).empty:
            return NOTHING
        row = self.row("crossover", arm=arm, workload=workload)
        if bounds or row["status"] == "not reached":
            return sentences.crossing(row.to_dict())
        return f"{row['value']:.0f}" if row["status"] == "ok" else str(row["status"])

    def sentences(self, finding: str | list[str], **where: Any) -> list[str]:
        """Return the rows of a finding as sentences."""
        return [sentences.sentence(row) for row in self.rows(finding, **where).to_dict("records")]

    @cached_property
    def check_report(self) -> pd.DataFrame:
        """Every check of the lab and its cells, a row each (`speclab.findings.check_report.COLUMNS`)."""
        tables = self.tables
        return check_report.check_report(tables.cells, tables.checks, self.findings, tables.answers)

    @cached_property
    def cells(self) -> pd.DataFrame:
        """The cells' rows; ``failed_checks`` names those too that hold an arm's answers against the baseline's."""
        return between.judged(self.tables.cells, self.tables.answers)

    def wide(self, finding: str, *, index: str = "arm", columns: str = "concurrency", **where: Any) -> pd.DataFrame:
        """Return a finding as a table in the lab's order: arms down and concurrencies across, unless told otherwise."""
        return self._shape(self.rows(finding, **where), index, columns)

    def written(
        self,
        finding: str | list[str],
        *,
        index: str = "arm",
        columns: str = "concurrency",
        form: str = "{:.2f}",
        bounds: bool = False,
        **where: Any,
    ) -> pd.DataFrame:
        """Return what `wide` does as text: a dash where there is no value, a ``!`` behind one that failed a check.

        With `bounds`, each value has its interval in brackets.
        """
        rows = self.rows(finding, **where)
        if bounds:
            text = [bracketed(row, form) for row in rows.itertuples()]
        else:
            text = [marked(value, status, form) for value, status in zip(rows["value"], rows["status"], strict=True)]
        shape = self._shape(rows.assign(value=pd.Series(text, index=rows.index, dtype=object)), index, columns)
        return shape.fillna(NOTHING)

    def _shape(self, rows: pd.DataFrame, index: str, columns: str) -> pd.DataFrame:
        shape = rows.pivot(index=index, columns=columns, values="value")
        shape = shape.reindex(index=self._in_order(shape.index), columns=self._in_order(shape.columns))
        shape.columns = [f"{label:g}" if isinstance(label, float) else str(label) for label in shape.columns]
        return shape.reset_index()

    def _in_order(self, labels: pd.Index) -> list[Any]:
        order: dict[Any, tuple[Any, ...]] = {"arm": self.lab.arms, "workload": self.lab.workloads}
        return [label for label in order.get(labels.name, sorted(labels)) if label in labels]


def marked(value: float, status: str, form: str = "{:.2f}") -> str:
    """Return a value as text: a dash where there is none, a ``!`` behind one that failed a check."""
    return NOTHING if pd.isna(value) else form.format(value) + ("" if status == "ok" else "!")


def bracketed(row: Any, form: str = "{:.2f}") -> str:
    """Return the value of a row of findings as `marked` does, with its interval in brackets where there is one."""
    text = marked(row.value, row.status, form)
    return text if pd.isna(row.low) or pd.isna(row.high) else f"{text} ({form.format(row.low)}–{form.format(row.high)})"


def of(lab: str, engine: str | None = None, *, data: Path | None = None) -> Results:
    """Return a lab's results on one engine.

    Raises
    ------
    UserError
        The lab is unknown, or has not been run on that engine.
    """
    return Results(labs.load(lab), source.read(lab, engine, data=data))


def records(lab: str, engine: str) -> list[CellRecord]:
    """Return the records of the kept cells that a lab's results rest on, in the order in which they began.

    They come without their requests, and from one source (`speclab.results.source.sources`).

    Raises
    ------
    UserError
        There are none, or one is damaged.
    """
    folder, ours = _kept(lab, engine)
    found = [store.read_record(file.parent) for file in folder.glob(f"*/[!.]*/{store.RECORD_FILE}")]
    kept = [record for record in found if source.is_of(record.provenance.identity.source, ours)]
    return sorted(kept, key=lambda record: (record.provenance.started_at, record.asked.arm, record.asked.cell))


def models(lab: str, engine: str) -> dict[str, str]:
    """Return the digest of each model that a lab's kept cells were measured with."""
    return weights.read(_runs(lab, engine))


def probed(lab: str, engine: str) -> ProbeRecord | None:
    """Return the kept probe of a model that is served, on the device that a lab's cells ran on; None without one."""
    device = _runs(lab, engine).parent.name.removeprefix(f"{engine}-")
    return next((probe for probe in probes.found() if probe.device == device and not probe.model.fused_states), None)


def text_checks(lab: str, engine: str) -> dict[str, TextRecord]:
    """Return the kept text checks of a lab, by the number format that they ran in.

    Raises
    ------
    UserError
        There is none, or one is damaged.
    """
    folder = _runs(lab, engine)
    kept = [texts.read(file) for file in sorted(folder.glob("text-*.json"))]
    if not kept:
        raise UserError("no text check here", f"make it: speclab text-check {lab}", file=folder)
    return {check.dtype: check for check in kept}


def _runs(lab: str, engine: str) -> Path:
    return _kept(lab, engine)[0]


def _kept(lab: str, engine: str) -> tuple[Path, str]:
    """Return the folder of the records that a lab's results rest on, and the badge of those among them that count."""
    runs = paths.root() / "data" / "runs"
    for shown in source.sources(lab, engine):
        if (folder := runs / shown.machine / lab).is_dir():
            return folder, shown.source
    raise UserError(f"no records of {lab}", f"run `speclab run {lab} --engine {engine}`", file=runs)
