"""Every check of a lab in one report: of each cell, of the lab as a whole, with what to do about each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from speclab.findings import between, lab_checks
from speclab.findings.catalogue import CATALOGUE
from speclab.findings.pairs import FAILED_CHECK, names_of
from speclab.findings.places import BESIDE
from speclab.lab import BASELINE
from speclab.metrics.checks.base import ASPECTS, CheckEntry
from speclab.metrics.checks.table import OF_A_CELL

COLUMNS = [
    *("scope", "arm", "workload", "concurrency", "repeat", "check"),
    *("verdict", "value", "limit", "reason", "remedy"),
]
WHOLE = ["concurrency", "repeat"]

CHECKS = (*OF_A_CELL, *between.OF_AN_ARM, *lab_checks.OF_A_LAB)
"""Every check, in the order of the book's page."""

REMEDIES = {entry.name: entry.remedy for entry in CHECKS}
"""What to do about a check that did not pass."""


def check_report(cells: pd.DataFrame, checks: pd.DataFrame, findings: pd.DataFrame,
                 answers: pd.DataFrame | None = None) -> pd.DataFrame:  # fmt: skip
    """Return every check of a lab.

    Parameters
    ----------
    cells, checks : pd.DataFrame
        Rows of `speclab.metrics.summary.Summary`.
    findings : pd.DataFrame
        As `speclab.findings.long_table.findings` makes them.
    answers : pd.DataFrame, optional
        Rows of `speclab.metrics.summary.Summary`; without them an arm's answers are not held against the baseline's.

    Returns
    -------
    pd.DataFrame
        `COLUMNS`, the lab's own first (``scope`` lab, then cell). `value` is null where a check could not be made.
    """
    rows = [*lab_checks.checks(cells, findings), *_of_cells(cells, checks, answers)]
    table = pd.DataFrame(rows, columns=COLUMNS)
    table["remedy"] = [
        None if verdict == "PASS" else REMEDIES.get(check)
        for check, verdict in zip(table["check"], table["verdict"], strict=True)
    ]
    return table


def withheld(findings: pd.DataFrame) -> pd.DataFrame:
    """Return the speed-ups of places where no repeat passed its checks: verdicts that failed cells alone would give."""
    return findings[(findings["finding"] == "speed_up") & (findings["status"] == FAILED_CHECK)]


def others_withheld(findings: pd.DataFrame) -> dict[str, int]:
    """Return the findings besides the speed-up that are withheld, with the number of their places."""
    failed = findings[(findings["status"] == FAILED_CHECK) & (findings["finding"] != "speed_up")]
    places = failed.drop_duplicates(["finding", "arm", "workload", "concurrency"])
    return {str(name): int(count) for name, count in places.groupby("finding", sort=False).size().items()}


def failed_at(row: Mapping[Any, Any], cells: pd.DataFrame) -> str:
    """Return the checks that failed at the place of a row, of its arm and of the baseline, with how many repeats.

    Parameters
    ----------
    row : mapping
        A row of findings.
    cells : pd.DataFrame
        Rows of `speclab.metrics.summary.Summary`, `speclab.findings.between.judged` or not.
    """
    here = cells[cells["arm"].isin([row["arm"], BASELINE])]
    for column in BESIDE:
        here = here[here[column] == row[column]]
    names = here.assign(check=here["failed_checks"].map(names_of)).explode("check").dropna(subset="check")
    counts = names.groupby(["arm", "check"], sort=False).size().reset_index(name="count")
    parts = [f"{arm}: {check} ({count})" for arm, check, count in counts.itertuples(index=False)]
    failed = here[here["status"] == "failed"]
    parts += [f"{arm}: did not run ({count})" for arm, count in failed.groupby("arm", sort=False).size().items()]
    return ", ".join(parts) or "arm and baseline ran under other conditions"


def rest_on(entry: CheckEntry) -> list[str]:
    """Return the names of the findings that require a check to have passed."""
    if entry.name in _OF_PAIRS:
        return _OF_PAIRS[entry.name]
    return [finding.name for finding in CATALOGUE if entry.bears_on & finding.rests_on]


_OF_PAIRS = {
    "same conditions": [finding.name for finding in CATALOGUE if finding.of == "pair"] + ["crossover"],
    "drafting time": list(lab_checks.STEP_PAIRS),
}
"""Checks that say nothing about a cell by itself, with the findings that they take away."""


def page_rows() -> list[tuple[str, ...]]:
    """Return the table of the book's page, `PAGE_COLUMNS`: a cell's paragraphs are Markdown."""
    return [
        (
            entry.name,
            f"{entry.compares}\n\n*What to do:* {entry.remedy}",
            f"**PASS** {entry.passes}\n\n**FAIL** {entry.fails}\n\n*{_bearing(entry)}*",
        )
        for entry in CHECKS
    ]


PAGE_COLUMNS = ("check", "question, and what to do where it does not pass", "limits, and *what rests on it*")


def _bearing(entry: CheckEntry) -> str:
    findings = rest_on(entry)
    if not findings:
        return "no finding: how far they carry"
    words = ", ".join(phrase for aspect, phrase in ASPECTS.items() if aspect in entry.bears_on)
    what = "everything" if len(entry.bears_on) == len(ASPECTS) else words or "arm against baseline"
    return f"{what}: {len(findings) / len(CATALOGUE):.0%} of the findings"


def _of_cells(cells: pd.DataFrame, checks: pd.DataFrame, answers: pd.DataFrame | None) -> Iterator[Mapping[Any, Any]]:
    for row in cells[cells["status"] == "failed"].to_dict("records"):
        place = {name: row[name] for name in ("arm", "workload", "concurrency", "repeat")}
        yield {"scope": "cell", **place, "check": "cell ran", "verdict": "FAIL", "reason": row["failure"]}
    for table in (checks, between.checks(cells, answers)):
        for row in table.to_dict("records"):
            yield {"scope": "cell", **row}
