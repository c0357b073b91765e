"""Each cell beside its baseline: same source (engine and device), workload, concurrency and repeat."""

from __future__ import annotations

import pandas as pd

from speclab.errors import UserError
from speclab.findings.rests_on import checks_of
from speclab.lab import BASELINE

PLACE = ["source", "workload", "concurrency"]
"""What a cell and its baseline have in common, beside the repeat."""

PAIRED_METRICS = ["system_throughput", "user_throughput", "step_time", "time_per_output_token"]

OK, FAILED_CHECK, NOT_RESOLVED, NOT_REACHED = "ok", "failed check", "not resolved", "not reached"


def state(cells: pd.DataFrame, finding: str | None = None) -> pd.Series[str]:
    """Return each cell's standing: ``ok``, or ``failed check`` where it failed, or did not pass its checks.

    With the name of a `finding`, only the checks that it rests on count (`speclab.findings.rests_on`).
    """
    checks = checks_of(finding)
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
        `cells` with ``state``, ``pair_state`` (``failed check`` if either of the two is, or if they
        were run under different ``conditions``: a flag in one of them only makes a speed-up of its own,
        as asynchronous scheduling does in vllm-project/vllm#29184; not known in tables without that
        column) and `PAIRED_METRICS` of the baseline under ``<metric>_baseline``, null where there is no
        such baseline cell.

    Raises
    ------
    UserError
        There is no cell of the baseline at all.
    """
    if not (cells["arm"] == BASELINE).any():
        found = ", ".join(sorted(cells["arm"].unique()))
        raise UserError(f"no results of the arm {BASELINE!r} (found: {found})", f"run the arm {BASELINE!r} too")
    numbers = cells.assign(
        conditions=cells.get("conditions"),  # tables of older versions have none
        state=state(cells),
        **{name: pd.to_numeric(cells[name]) for name in PAIRED_METRICS},
    )
    keys = [*PLACE, "repeat"]
    of_baseline = numbers.loc[numbers["arm"] == BASELINE, [*keys, *PAIRED_METRICS, "state", "conditions"]]
    pairs = numbers.merge(of_baseline, on=keys, how="left", suffixes=("", "_baseline"), validate="many_to_one")
    either = (pairs["state"] == FAILED_CHECK) | (pairs["state_baseline"] == FAILED_CHECK)
    ours, theirs = pairs["conditions"], pairs["conditions_baseline"]
    either |= ours.notna() & theirs.notna() & (ours != theirs)
    return pairs.assign(pair_state=either.map({True: FAILED_CHECK, False: OK})).drop(
        columns=["state_baseline", "conditions_baseline"]
    )
