from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from speclab.findings.acceptance import acceptance_drift, lengths, pooled


@pytest.fixture
def two_points(cell_row, position_rows):
    cells = pd.DataFrame([cell_row("eagle3-k3", c) for c in (1, 256)])
    positions = pd.concat(
        [
            position_rows("eagle3-k3", 1, 1000, [750, 550, 400]),
            position_rows("eagle3-k3", 256, 1e6, [7.4e5, 5.4e5, 4e5]),
        ]
    )
    return cells, positions


def test_length_and_its_interval_by_hand(two_points):
    table = lengths(pooled(*reversed(two_points))).set_index("concurrency")
    # accepted tokens of a draft: 0 w.p. 0.25, 1 w.p. 0.20, 2 w.p. 0.15, 3 w.p. 0.40
    outcomes, weights = np.arange(4), np.array([0.25, 0.20, 0.15, 0.40])
    mean = float(outcomes @ weights)
    error = np.sqrt((outcomes**2 @ weights - mean**2) / 1000)
    assert table.loc[1, "value"] == pytest.approx(1 + mean)
    assert table.loc[1, "value"] == pytest.approx(2.70)
    assert table.loc[1, "error"] == pytest.approx(error)
    assert table.loc[1, "high"] - table.loc[1, "low"] == pytest.approx(2 * 1.959964 * error, rel=1e-6)
    assert table.loc[1, "n"] == 1000


def test_repeats_are_pooled_by_count(cell_row, position_rows):
    cells = pd.DataFrame([cell_row("eagle3-k3", 1, repeat=0), cell_row("eagle3-k3", 1, repeat=1)])
    positions = pd.concat(
        [position_rows("eagle3-k3", 1, 100, [80, 40]), position_rows("eagle3-k3", 1, 300, [120, 60], repeat=1)]
    )
    table = pooled(positions, cells)
    assert table["marginal"].tolist() == [0.5, 0.25]
    assert table["conditional"].tolist() == [0.5, 0.5]
    assert table["reached"].tolist() == [400, 200]


def test_a_repeat_that_failed_a_check_is_left_out_where_one_did_not(cell_row, position_rows):
    cells = pd.DataFrame([cell_row("eagle3-k3", 1, failed_checks="counter reset"), cell_row("eagle3-k3", 1, repeat=1)])
    positions = pd.concat(
        [position_rows("eagle3-k3", 1, 100, [80, 40]), position_rows("eagle3-k3", 1, 300, [120, 60], repeat=1)]
    )
    table = pooled(positions, cells)
    assert table["marginal"].tolist() == [0.4, 0.2]
    assert set(table["status"]) == {"ok"}
    only_bad = pooled(positions.query("repeat == 0"), cells)
    assert set(only_bad["status"]) == {"failed check"}
    assert only_bad["marginal"].tolist() == [0.8, 0.4]


def test_drift_by_hand(two_points):
    drift = acceptance_drift(lengths(pooled(*reversed(two_points)))).iloc[0]
    assert drift["value"] == pytest.approx(abs(2.68 / 2.70 - 1))
    assert drift["n"] == 2
    assert drift["status"] == "ok"
    # 1000 drafts at one end cannot tell this from no move at all
    assert drift["low"] == 0.0
    assert 0.02 < drift["high"] < 0.04


def test_drift_needs_two_points(two_points, cell_row):
    cells, positions = two_points
    alone = acceptance_drift(lengths(pooled(positions.query("concurrency == 1"), cells))).iloc[0]
    assert np.isnan(alone["value"])
    assert alone["status"] == "not resolved"
    bad = cells.assign(failed_checks=["", "counter reset"])
    assert acceptance_drift(lengths(pooled(positions, bad))).iloc[0]["status"] == "failed check"
    # how fast the window went says nothing about what was accepted in it
    slow = cells.assign(failed_checks=["", "stationarity; occupancy"])
    assert acceptance_drift(lengths(pooled(positions, slow))).iloc[0]["status"] == "ok"


def test_no_drafts_no_rows():
    empty = pooled(pd.DataFrame(), pd.DataFrame())
    assert lengths(empty).empty
    assert acceptance_drift(lengths(empty)).empty
