"""Every check of a lab in one report: of each cell, of the lab as a whole, with what to do about each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from speclab.findings.pairs import FAILED_CHECK, OK
from speclab.findings.places import BESIDE, CELL
from speclab.lab import BASELINE

COLUMNS = [
    *("scope", "arm", "workload", "concurrency", "repeat", "check"),
    *("verdict", "value", "limit", "reason", "remedy"),
]
WHOLE = ["concurrency", "repeat"]

TREND_LIMIT = 0.015
"""How far acceptance may move over concurrency and still pass as flat."""

TREND_FAILS = 0.10

REMEDIES = {
    "occupancy": "lengthen the window until it holds several answers of each slot; see the checks usage and counters",
    "in flight": "look for failed requests, or for a client that is slow to send the next one",
    "running requests": "raise max-num-seqs or the room for the KV cache, or lower the concurrency",
    "stationarity": "run it again with nothing else on the machine, or lengthen the window",
    "client lag": "run the client on cores of its own; `speclab selftest` says what it sees cleanly",
    "client rate": "run the client on faster cores with nothing else to do (`speclab selftest`), or fewer in flight",
    "event is a step": "set stream-interval to 1, and look for a proxy that gathers events",
    "usage": "look for lost events; send stream_options.include_usage",
    "counters": "keep other traffic off the server",
    "counter reset": "find out why the server started again: the end of its log is in the cell's record",
    "speculation": "compare the server's flags with the arm's speculation",
    "request errors": "read the first error; the server's log has the rest",
    "prefix cache": "turn enable-prefix-caching off, or say in the lab that it is wanted",
    "cell ran": "read the reason; `speclab run` tries it again",
    "baseline beside it": "run the baseline at the same places",
    "same conditions": "run arm and baseline again with the same flags, prompts and phases",
    "acceptance is flat": "do not carry an acceptance length from one concurrency to another",
    "repeats": "set repeats to 3 or more: what changes from window to window is in no single one",
}
"""What to do about a check that did not pass."""


def check_report(cells: pd.DataFrame, checks: pd.DataFrame, findings: pd.DataFrame) -> pd.DataFrame:
    """Return every check of a lab.

    Parameters
    ----------
    cells, checks : pd.DataFrame
        Rows of `speclab.metrics.summary.Summary`.
    findings : pd.DataFrame
        As `speclab.findings.long_table.findings` makes them.

    Returns
    -------
    pd.DataFrame
        `COLUMNS`, the lab's own first (``scope`` lab, then cell). `value` is null where a check could not be made.
    """
    rows = [*_of_the_lab(cells, findings), *_of_cells(cells, checks)]
    table = pd.DataFrame(rows, columns=COLUMNS)
    table["remedy"] = [
        None if verdict == "PASS" else REMEDIES.get(check)
        for check, verdict in zip(table["check"], table["verdict"], strict=True)
    ]
    return table


def withheld(findings: pd.DataFrame) -> pd.DataFrame:
    """Return the speed-ups of places where no repeat passed its checks: verdicts that failed cells alone would give."""
    return findings[(findings["finding"] == "speed_up") & (findings["status"] == FAILED_CHECK)]


def failed_at(row: Mapping[Any, Any], cells: pd.DataFrame) -> str:
    """Return the checks that failed at the place of a row, of its arm and of the baseline, with how many repeats."""
    here = cells[cells["arm"].isin([row["arm"], BASELINE])]
    for column in BESIDE:
        here = here[here[column] == row[column]]
    names = here.assign(check=here["failed_checks"].str.split("; ")).explode("check").dropna(subset="check")
    counts = names.groupby(["arm", "check"], sort=False).size().reset_index(name="count")
    parts = [f"{arm}: {check} ({count})" for arm, check, count in counts.itertuples(index=False)]
    failed = here[here["status"] == "failed"]
    parts += [f"{arm}: did not run ({count})" for arm, count in failed.groupby("arm", sort=False).size().items()]
    return ", ".join(parts) or "arm and baseline ran under other conditions"


def _of_cells(cells: pd.DataFrame, checks: pd.DataFrame) -> Iterator[Mapping[Any, Any]]:
    for row in cells[cells["status"] == "failed"].to_dict("records"):
        place = {name: row[name] for name in ("arm", "workload", "concurrency", "repeat")}
        yield {"scope": "cell", **place, "check": "cell ran", "verdict": "FAIL", "reason": row["failure"]}
    for row in checks.to_dict("records"):
        yield {"scope": "cell", **row}


def _of_the_lab(cells: pd.DataFrame, findings: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for arm, own in cells[cells["arm"] != BASELINE].groupby("arm", sort=False):
        for check in (_beside(own, cells), _alike(own, cells)):
            yield {"scope": "lab", "arm": arm, **check}
    for row in findings[findings["finding"] == "acceptance_trend"].to_dict("records"):
        yield {"scope": "lab", "arm": row["arm"], "workload": row["workload"], **_flat(row)}
    repeats = int(cells.groupby(CELL)["repeat"].nunique().max())
    yield {
        "scope": "lab", "check": "repeats", "verdict": "PASS" if repeats > 1 else "WARN", "value": float(repeats),
        "limit": 2.0, "reason": f"{repeats} of each cell" if repeats > 1 else "one of each cell: drift is not seen",
    }  # fmt: skip


def _beside(own: pd.DataFrame, cells: pd.DataFrame) -> dict[str, Any]:
    keys = [*BESIDE, "repeat"]
    baseline = cells[cells["arm"] == BASELINE][keys].assign(there=True)
    there = own[keys].merge(baseline, on=keys, how="left")["there"].notna()
    alone = int((~there).sum())
    reason = f"{alone} of {len(own)} cells have no baseline beside them" if alone else "every cell has a baseline"
    verdict = "PASS" if not alone else "FAIL" if alone == len(own) else "WARN"
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
