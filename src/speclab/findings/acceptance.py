"""Acceptance over repeats and over concurrency, and whether it falls as the batch grows."""

from __future__ import annotations

import numpy as np
import pandas as pd

from speclab.findings.pairs import FAILED_CHECK, NOT_RESOLVED, OK, state
from speclab.findings.places import CELL, CURVE
from speclab.metrics.acceptance import Z_95, with_intervals


def pooled(positions: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Return acceptance by position, counts summed over the repeats of a cell.

    Parameters
    ----------
    positions : pd.DataFrame
        Rows of `speclab.metrics.summary.Summary`.
    cells : pd.DataFrame
        Rows of `speclab.metrics.summary.Summary`.

    Returns
    -------
    pd.DataFrame
        ``source, arm, workload, concurrency, status`` and the columns of `speclab.metrics.acceptance.with_intervals`.
        Repeats that failed a check are left out where one did not.
    """
    if positions.empty:
        return pd.DataFrame(columns=[*CELL, "status", "position"])
    keys = [*CELL, "repeat"]
    standing = cells[keys].assign(status=state(cells, "acceptance_by_position"))
    rows = positions[[*keys, "position", "drafts", "accepted"]].merge(standing, on=keys, validate="many_to_one")
    any_ok = rows["status"].eq(OK).groupby([rows[key] for key in CELL]).transform("any")
    rows = rows[~any_ok | rows["status"].eq(OK)]
    sums = rows.groupby([*CELL, "status", "position"], sort=False, as_index=False)[["drafts", "accepted"]].sum()
    sums = sums.sort_values([*CELL, "position"], kind="stable", ignore_index=True)
    reached = sums.groupby(CELL)["accepted"].shift().fillna(sums["drafts"])
    intervals = with_intervals(
        sums["drafts"].to_numpy(float), sums["accepted"].to_numpy(float), reached.to_numpy(float)
    )
    return pd.concat([sums[[*CELL, "status", "position"]], intervals], axis=1)


def lengths(pooled_positions: pd.DataFrame) -> pd.DataFrame:
    """Return the reported acceptance length of each cell with a 95% interval.

    The share of drafts accepted up to each position holds the whole distribution of accepted tokens: with p_i = share
    accepted up to position i, counted from 0, the mean is the sum of p_i and the mean square the sum of (2i + 1) p_i.

    Parameters
    ----------
    pooled_positions : pd.DataFrame
        From `pooled`.

    Returns
    -------
    pd.DataFrame
        ``source, arm, workload, concurrency, status, value, error, low, high, n``: `value` and its standard error in
        tokens, `n` drafts. Drafts are taken as independent; those of one text are not, so the truth is a little wider.
    """
    if pooled_positions.empty:
        return pd.DataFrame(columns=[*CELL, "status", "value", "error", "low", "high", "n"])
    share, position = pooled_positions["marginal"], pooled_positions["position"]
    moments = pooled_positions.assign(mean=share, square=(2 * position + 1) * share)
    grouped = moments.groupby([*CELL, "status"], sort=False, as_index=False)
    table = grouped.agg(mean=("mean", "sum"), square=("square", "sum"), n=("drafts", "first"))
    error = np.sqrt((table["square"] - table["mean"] ** 2).clip(lower=0) / table["n"])
    value = 1 + table["mean"]
    table = table.assign(value=value, error=error, low=value - Z_95 * error, high=value + Z_95 * error)
    return table[[*CELL, "status", "value", "error", "low", "high", "n"]]


def acceptance_drift(cell_lengths: pd.DataFrame) -> pd.DataFrame:
    """Return how far acceptance moves over concurrency, for each source, arm and workload.

    Parameters
    ----------
    cell_lengths : pd.DataFrame
        From `lengths`.

    Returns
    -------
    pd.DataFrame
        ``source, arm, workload, status, value, low, high, n``: `value` is the largest move of the reported acceptance
        length away from its value at the lowest concurrency, as a share of it and without its sign; `low` and `high`
        its 95% interval by the delta method. As the largest of several, it is above zero by chance alone: read the
        interval. Not resolved with fewer than two concurrencies.
    """
    columns = [*CURVE, "status", "value", "low", "high", "n"]
    if cell_lengths.empty:
        return pd.DataFrame(columns=columns)
    usable = cell_lengths[cell_lengths["status"] == OK].sort_values([*CURVE, "concurrency"], kind="stable")
    first = usable.groupby(CURVE)[["value", "error"]].transform("first")
    ratio = usable["value"] / first["value"]
    error = ratio * np.hypot(usable["error"] / usable["value"], first["error"] / first["value"])
    moves = usable.assign(move=(ratio - 1).abs(), move_error=error)
    largest = moves.loc[moves.groupby(CURVE)["move"].idxmax()].set_index(CURVE)
    table = cell_lengths.groupby(CURVE, sort=False, as_index=False).agg(
        n=("status", lambda status: int((status == OK).sum())), failed=("status", lambda s: bool((s != OK).any()))
    )
    table = table.join(largest[["move", "move_error"]], on=CURVE)
    is_known = table["n"] >= 2
    margin = Z_95 * table["move_error"]
    unresolved = table["failed"].map({True: FAILED_CHECK, False: NOT_RESOLVED})
    return table.assign(
        value=table["move"].where(is_known),
        low=(table["move"] - margin).clip(lower=0).where(is_known),
        high=(table["move"] + margin).where(is_known),
        status=unresolved.where(~is_known, OK),
    )[columns]


def with_length_intervals(of_cells: pd.DataFrame, cell_lengths: pd.DataFrame) -> pd.DataFrame:
    """Put the interval that the drafts give on the reported acceptance length, in place of the range of repeats.

    Parameters
    ----------
    of_cells : pd.DataFrame
        From `speclab.findings.averages.averaged`.
    cell_lengths : pd.DataFrame
        From `lengths`.
    """
    if cell_lengths.empty:
        return of_cells
    by_drafts = cell_lengths.assign(finding="reported_acceptance_length").set_index(["finding", *CELL])
    table = of_cells.set_index(["finding", *CELL]).astype({"n": float})
    known = by_drafts.index.intersection(table.index)
    table.loc[known, ["low", "high", "n"]] = by_drafts.loc[known, ["low", "high", "n"]].astype(float)
    return table.reset_index()


def by_position(pooled_positions: pd.DataFrame) -> list[pd.DataFrame]:
    """Return both acceptances by position, from `pooled`, as rows of findings."""
    if pooled_positions.empty:
        return []
    keys = [*CELL, "status", "position"]
    kinds = (
        ("acceptance_by_position", "marginal", "drafts"),
        ("acceptance_by_position_conditional", "conditional", "reached"),
    )
    return [
        pooled_positions[[*keys, share, f"{share}_low", f"{share}_high", n]]
        .set_axis([*keys, "value", "low", "high", "n"], axis=1)
        .assign(finding=finding)
        for finding, share, n in kinds
    ]
