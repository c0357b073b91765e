"""Each cell beside its baseline: same source (engine and device), workload, concurrency and repeat."""

from __future__ import annotations

import pandas as pd

from speclab.findings.catalogue import BY_NAME, CATALOGUE, PAIRED_FIGURES, Finding
from speclab.findings.places import BESIDE, CELL
from speclab.lab import BASELINE

OK, FAILED_CHECK, NOT_RESOLVED, NOT_REACHED = "ok", "failed check", "not resolved", "not reached"


def state(cells: pd.DataFrame, finding: str, side: str = "") -> pd.Series[str]:
    """Return each cell's standing as to a finding: ``ok``, or ``failed check``.

    That is where it failed, or did not pass one of the checks that the finding requires. `side` is the end of the names
    of the columns, ``_baseline`` for the cells beside those of `with_baseline`; a baseline that is not there is no
    failure.
    """
    required = BY_NAME[finding].required_checks
    failed = cells[f"failed_checks{side}"].map(lambda names: not required.isdisjoint(names_of(names))).astype(bool)
    bad = (cells[f"status{side}"] == "failed") | failed
    return bad.map({True: FAILED_CHECK, False: OK})


def names_of(checks: object) -> list[str]:
    """Return the names in a cell's ``failed_checks`` or ``warned_checks``; none where it is null, of whatever kind."""
    return [name for name in checks.split("; ") if name] if isinstance(checks, str) else []


def with_baseline(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells with the baseline's figures of the same place and repeat beside them.

    Parameters
    ----------
    cells : pd.DataFrame
        Rows of `speclab.metrics.summary.Summary`.

    Returns
    -------
    pd.DataFrame
        `cells` with the findings that are products of two metrics; `speclab.findings.catalogue.PAIRED_FIGURES`,
        ``status`` and ``failed_checks`` of the baseline under ``<name>_baseline``, null where there is no such baseline
        cell; and ``is_alike``: whether the two were run under the same ``conditions`` (a flag in one of them only makes
        a speed-up of its own, as asynchronous scheduling does in vllm-project/vllm#29184; taken as alike in tables
        without that column).
    """
    numbers = cells.assign(
        conditions=cells.get("conditions"),  # tables of older versions have none
        **{name: pd.to_numeric(cells[name]) for name in PAIRED_FIGURES},
    )
    for finding in CATALOGUE:
        if finding.times:
            one, other = (pd.to_numeric(numbers[name]) for name in finding.times)
            numbers[finding.name] = one * other
    keys = [*BESIDE, "repeat"]
    beside = [*PAIRED_FIGURES, "status", "failed_checks", "conditions"]
    of_baseline = numbers.loc[numbers["arm"] == BASELINE, [*keys, *beside]]
    pairs = numbers.merge(of_baseline, on=keys, how="left", suffixes=("", "_baseline"), validate="many_to_one")
    ours, theirs = pairs["conditions"], pairs["conditions_baseline"]
    is_alike = ours.isna() | theirs.isna() | (ours == theirs)
    return pairs.assign(is_alike=is_alike).drop(columns="conditions_baseline")


def pair_state(pairs: pd.DataFrame, finding: str) -> pd.Series[str]:
    """Return the standing of each of `with_baseline`'s pairs: ok where both cells are, and they were run alike."""
    bad = (state(pairs, finding) != OK) | (state(pairs, finding, "_baseline") != OK) | ~pairs["is_alike"]
    return bad.map({True: FAILED_CHECK, False: OK})


def by_repeat(finding: Finding, pairs: pd.DataFrame, k: pd.Series[int]) -> pd.DataFrame | None:
    """Return a finding of cells or pairs, a row for each repeat; None where the cells do not hold it.

    Parameters
    ----------
    finding : Finding
        Which one.
    pairs : pd.DataFrame
        From `with_baseline`.
    k : pd.Series of int
        Draft tokens that each row's arm asks for; 0 for the baseline.

    Returns
    -------
    pd.DataFrame
        As `speclab.findings.averages.averaged` takes them. A ratio weighs its denominator: the mean of ratios is then
        the ratio of means, all of an arm over all of its baseline, whichever repeat it fell in. The plain mean would be
        pulled up by every repeat in which the baseline happened to be slow.
    """
    weight: pd.Series[float] | float = 1.0
    base: pd.Series[float] | float = float("nan")
    rows = pairs["arm"] != BASELINE
    if finding.over:
        value, weight = pairs[finding.over[0]], pairs[f"{finding.over[1]}_baseline"]
        value = value / weight
    elif finding.less:
        parts = k.where(k > 0) if finding.per_k else 1.0
        base = pairs[f"{finding.less[1]}_baseline"] / parts
        value = (pairs[finding.less[0]] - pairs[f"{finding.less[1]}_baseline"]) / parts
    elif finding.of == "cell" and finding.name in pairs:
        value, rows = pairs[finding.name], pd.Series(True, index=pairs.index)
    else:
        return None
    standing = state(pairs, finding.name) if finding.of == "cell" else pair_state(pairs, finding.name)
    table = pairs[[*CELL, "repeat"]].assign(
        finding=finding.name, value=pd.to_numeric(value).astype(float), weight=weight, base=base, state=standing
    )
    return table[k > 0 if finding.drafts_only else rows]
