"""Checks of a lab as a whole: what takes all cells of an arm, or its findings, to see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from speclab.findings.pairs import FAILED_CHECK, OK
from speclab.findings.places import BESIDE, CELL
from speclab.lab import BASELINE
from speclab.metrics.checks.base import ALL, CheckEntry, Verdict

TREND_LIMIT = 0.015
"""How far acceptance may move over concurrency and still pass as flat."""

TREND_FAILS = 0.10

ENOUGH_REPEATS = 2

OF_A_LAB = (
    CheckEntry(
        "cell ran",
        "did the server start, and the cell come to its end?",
        "it did",
        "it did not",
        "read the reason; `speclab run` tries it again",
        ALL,
    ),
    CheckEntry(
        "baseline beside it",
        "is there a cell of the baseline at the same place, from the same source?",
        "beside each cell",
        "beside none (beside some: WARN)",
        "run the baseline at the same places",
    ),
    CheckEntry(
        "same conditions",
        "were arm and baseline run alike, but for speculation? (target, phases, sampling, server flags, environment, "
        "prompts, version of the measuring code)",
        "all pairs",
        "any other pair; every finding that compares the two then fails",
        "run arm and baseline again with the same flags, prompts and phases",
    ),
    CheckEntry(
        "drafting time",
        "does a step of the arm take at least as long as the baseline's? Drafting and verifying take time",
        "not below 0, or not beyond its interval",
        "below 0, and its interval too; what compares the two steps then fails",
        "see the checks bunched events and engine steps; then run arm and baseline in turn, on a machine that does "
        "nothing else",
    ),
    CheckEntry(
        "acceptance is flat",
        "does the acceptance of the same prompts stay the same over concurrency?",
        f"within {TREND_LIMIT:.1%}, or 0 lies in its interval",
        f"beyond {TREND_FAILS:.0%}",
        "do not carry an acceptance length from one concurrency to another",
    ),
    CheckEntry(
        "repeats",
        "was each cell run more than once?",
        f"{ENOUGH_REPEATS} or more",
        "never: one of each is a WARN",
        "set repeats to 3 or more: what changes from window to window is in no single one",
    ),
)
"""Checks that take several cells, or a cell that did not run."""

STEP_PAIRS = ("drafting_time", "drafting_time_per_position", "break_even_length")
"""Findings that hold a step of the arm against the baseline's."""


def without_negative_drafting(table: pd.DataFrame) -> pd.DataFrame:
    """Return findings in which a drafting time that cannot be is a failed check, with what rests on the same steps.

    Parameters
    ----------
    table : pd.DataFrame
        ``finding``, `CELL`, ``high, status``.
    """
    impossible = negative_drafting(table)
    here = pd.MultiIndex.from_frame(table[CELL]).isin(pd.MultiIndex.from_frame(impossible[CELL]))
    return table.assign(status=table["status"].mask(here & table["finding"].isin(STEP_PAIRS), FAILED_CHECK))


def negative_drafting(table: pd.DataFrame) -> pd.DataFrame:
    """Return the drafting times that are negative with their whole interval."""
    return table[(table["finding"] == "drafting_time") & (table["high"] < 0)]


def checks(cells: pd.DataFrame, findings: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the checks of a lab as a whole, as rows of `speclab.findings.check_report.COLUMNS`.

    Parameters
    ----------
    cells : pd.DataFrame
        Rows of `speclab.metrics.summary.Summary`.
    findings : pd.DataFrame
        As `speclab.findings.long_table.findings` makes them.
    """
    for arm, own in cells[cells["arm"] != BASELINE].groupby("arm", sort=False):
        for check in (_beside(own, cells), _alike(own, cells), *_drafting(findings[findings["arm"] == arm])):
            yield {"scope": "lab", "arm": arm, **check}
    for row in findings[findings["finding"] == "acceptance_trend"].to_dict("records"):
        yield {"scope": "lab", "arm": row["arm"], "workload": row["workload"], **_flat(row)}
    repeats = int(cells.groupby(CELL)["repeat"].nunique().max())
    enough = repeats >= ENOUGH_REPEATS
    yield {
        "scope": "lab", "check": "repeats", "verdict": "PASS" if enough else "WARN", "value": float(repeats),
        "limit": float(ENOUGH_REPEATS),
        "reason": f"{repeats} of each cell" if enough else "one of each cell: drift is not seen",
    }  # fmt: skip


def _beside(own: pd.DataFrame, cells: pd.DataFrame) -> dict[str, Any]:
    keys = [*BESIDE, "repeat"]
    of_baseline = cells[cells["arm"] == BASELINE]
    there = pd.MultiIndex.from_frame(own[keys]).isin(pd.MultiIndex.from_frame(of_baseline[keys]))
    # a server that did not start has no version, and so a source of its own: its failure is the arm's, not a source's
    anywhere = [key for key in keys if key != "source"]
    of_any = pd.MultiIndex.from_frame(own[anywhere]).isin(pd.MultiIndex.from_frame(of_baseline[anywhere]))
    alone = int((~(there | (of_any & (own["status"] == "failed").to_numpy()))).sum())
    reason = f"{alone} of {len(own)} cells have no baseline beside them" if alone else "every cell has a baseline"
    verdict: Verdict = "PASS" if not alone else "FAIL" if alone == len(own) else "WARN"
    return {"check": "baseline beside it", "verdict": verdict, "value": alone / len(own), "limit": 0.0,
            "reason": reason}  # fmt: skip


def _alike(own: pd.DataFrame, cells: pd.DataFrame) -> dict[str, Any]:
    keys = [*BESIDE, "repeat"]
    if "conditions" not in cells:
        return {"check": "same conditions", "verdict": "WARN", "reason": "these tables do not say"}
    baseline = cells[cells["arm"] == BASELINE][[*keys, "conditions"]]
    pairs = own[[*keys, "conditions"]].merge(baseline, on=keys, suffixes=("", "_baseline"))
    pairs = pairs.dropna(subset=["conditions", "conditions_baseline"])
    if pairs.empty:
        return {"check": "same conditions", "verdict": "WARN", "reason": "no cell has a baseline to compare with"}
    other = int((pairs["conditions"] != pairs["conditions_baseline"]).sum())
    reason = f"{other} of {len(pairs)} pairs ran under other conditions" if other else "the same but for speculation"
    return {"check": "same conditions", "verdict": "FAIL" if other else "PASS", "value": other / len(pairs),
            "limit": 0.0, "reason": reason}  # fmt: skip


def _drafting(of_arm: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield a check for each place whose drafting time cannot be; one in all where each can."""
    times = of_arm[(of_arm["finding"] == "drafting_time") & of_arm["value"].notna()]
    name, impossible = "drafting time", negative_drafting(times)
    for row in impossible.to_dict("records"):
        reason = f"{row['value']:.3g} ms ({row['low']:.3g} to {row['high']:.3g}) less than the baseline's step"
        yield {"check": name, "verdict": "FAIL", "value": row["value"], "limit": 0.0, "workload": row["workload"],
               "concurrency": row["concurrency"], "reason": reason}  # fmt: skip
    if len(times) and impossible.empty:
        reason = f"none of {len(times)} is below 0 beyond its interval"
        yield {"check": name, "verdict": "PASS", "value": float(times["value"].min()), "limit": 0.0, "reason": reason}


def _flat(row: Mapping[Any, Any]) -> dict[str, Any]:
    name = "acceptance is flat"
    if row["status"] != OK:
        return {"check": name, "verdict": "WARN", "limit": TREND_LIMIT,
                "reason": f"{row['status']}: too few prompts were answered at two concurrencies"}  # fmt: skip
    value, low, high = (float(row[column]) for column in ("value", "low", "high"))
    moved = low > 0 or high < 0
    verdict = "PASS" if not moved or abs(value) <= TREND_LIMIT else "WARN" if abs(value) <= TREND_FAILS else "FAIL"
    reason = f"{value:+.1%} ({low:+.1%} to {high:+.1%}) from the lowest to the highest concurrency"
    return {"check": name, "verdict": verdict, "value": value, "limit": TREND_LIMIT, "reason": reason}
