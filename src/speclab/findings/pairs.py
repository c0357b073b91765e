"""Each cell beside its baseline: same source (engine and device), workload, concurrency and repeat."""

from __future__ import annotations

import pandas as pd

from speclab.findings.catalogue import BY_NAME, CATALOGUE, PAIRED_FIGURES, Finding
from speclab.findings.places import BESIDE, CELL
from speclab.lab import BASELINE

OK, FAILED_CHECK, NOT_RESOLVED, NOT_REACHED = "ok", "failed check", "not resolved", "not reached"


def state(cells: pd.DataFrame, finding: str | None = None) -> pd.Series[str]:
    """Return each cell's standing: ``ok``, or ``failed check`` where it failed, or did not pass its checks.

    With the name of a `finding`, only the checks that it requires count.
    """
    checks = None if finding is None else BY_NAME[finding].required_checks
    failed = cells["failed_checks"].map(lambda names: _split(names) if checks is None else _split(names) & checks)
    bad = (cells["status"] == "failed") | failed.map(bool).astype(bool)
    return bad.map({True: FAILED_CHECK, False: OK})


def _split(names: object) -> frozenset[str]:
    return frozenset(filter(None, names.split("; "))) if isinstance(names, str) else frozenset()


def with_baseline(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells with the baseline's figures of the same place and repeat beside them.

    Parameters
    ----------
    cells : pd.DataFrame
        Rows of `speclab.metrics.summary.Summary`.

    Returns
    -------
    pd.DataFrame
        `cells` with the findings that are products of two metrics; ``pair_state`` (``failed check`` if either of the
        two is, or if they were run under different ``conditions``: a flag in one of them only makes a speed-up of its
        own, as asynchronous scheduling does in vllm-project/vllm#29184; not known in tables without that column); and
        `speclab.findings.catalogue.PAIRED_FIGURES` of the baseline under ``<metric>_baseline``, null where there is no
        such baseline cell.
    """
    numbers = cells.assign(
        conditions=cells.get("conditions"),  # tables of older versions have none
        state=state(cells),
        **{name: pd.to_numeric(cells[name]) for name in PAIRED_FIGURES},
    )
    for finding in CATALOGUE:
        if finding.times:
            one, other = (pd.to_numeric(numbers[name]) for name in finding.times)
            numbers[finding.name] = one * other
    keys = [*BESIDE, "repeat"]
    of_baseline = numbers.loc[numbers["arm"] == BASELINE, [*keys, *PAIRED_FIGURES, "state", "conditions"]]
    pairs = numbers.merge(of_baseline, on=keys, how="left", suffixes=("", "_baseline"), validate="many_to_one")
    either = (pairs["state"] == FAILED_CHECK) | (pairs["state_baseline"] == FAILED_CHECK)
    ours, theirs = pairs["conditions"], pairs["conditions_baseline"]
    either |= ours.notna() & theirs.notna() & (ours != theirs)
    return pairs.assign(pair_state=either.map({True: FAILED_CHECK, False: OK})).drop(
        columns=["state_baseline", "conditions_baseline"]
    )


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
    standing, rows = pairs["pair_state"], pairs["arm"] != BASELINE
    if finding.over:
        value, weight = pairs[finding.over[0]], pairs[f"{finding.over[1]}_baseline"]
        value = value / weight
    elif finding.less:
        parts = k.where(k > 0) if finding.per_k else 1.0
        base = pairs[f"{finding.less[1]}_baseline"] / parts
        value = (pairs[finding.less[0]] - pairs[f"{finding.less[1]}_baseline"]) / parts
    elif finding.of == "cell" and finding.name in pairs:
        value, standing = pairs[finding.name], state(pairs, finding.name)
        rows = pd.Series(True, index=pairs.index)
    else:
        return None
    table = pairs[[*CELL, "repeat"]].assign(
        finding=finding.name, value=pd.to_numeric(value).astype(float), weight=weight, base=base, state=standing
    )
    return table[k > 0 if finding.drafts_only else rows]
