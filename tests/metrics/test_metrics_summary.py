from __future__ import annotations

import json
import time

import numpy as np
import pytest

from speclab.engines.base import Reading
from speclab.metrics import acceptance, summary
from speclab.metrics.summary import METRICS
from speclab.record.schema import Failure


def test_one_row_with_every_metric(request_row, make_cell):
    rows = [request_row(0.0, [(0.5, 1), (0.62, 3), (0.74, 3)]), request_row(1.0, [(1.5, 1)])]
    row = summary.of(make_cell(rows, k=2)).row
    assert row["arm"] == "ngram-k2"
    assert row["source"] == "simulated (h100-sxm)"
    assert row["conditions"] == summary.of(make_cell(rows)).row["conditions"]
    assert row["conditions"] != summary.of(make_cell(rows, server={"async-scheduling": True})).row["conditions"]
    assert (row["requests"], row["ended_requests"], row["one_token_answers"], row["failed_requests"]) == (2, 2, 1, 0)
    assert row["window_s"] == 10.0
    assert row["system_throughput"] == pytest.approx(0.8)
    assert row["time_per_output_token"] == pytest.approx(40.0)
    assert row["tokens_per_step"] == pytest.approx(3.0)
    assert row["step_time"] == pytest.approx(120.0)
    assert row["ms_per_accepted_token"] == pytest.approx(40.0)
    assert row["reported_acceptance_length"] is None
    assert "running requests" in str(row["warned_checks"])
    assert "in flight" in str(row["failed_checks"])  # one slot, empty most of the time
    json.dumps(row, allow_nan=False)


def test_a_failed_cell_is_a_row_with_its_reason(request_row, make_cell):
    failure = Failure(kind="out of memory", reason="no room for the cache")
    cell = make_cell([request_row(0.0, [(0.5, 1), (0.6, 1)])], failure=failure, k=2)
    row = summary.of(cell).row
    assert row["status"] == "failed"
    assert row["failure"] == "out of memory: no room for the cache"
    assert all(row[name] is None for name in METRICS)
    assert summary.of(cell).positions.empty
    assert summary.of(cell).checks.empty


def test_a_failed_cell_without_requests(make_cell):
    row = summary.of(make_cell([], failure=Failure(kind="will not start", reason="bad flag"))).row
    assert (row["status"], row["requests"]) == ("failed", 0)


def test_an_idle_cell_is_no_crash(make_cell):
    row = summary.of(make_cell([])).row
    assert row["system_throughput"] == 0.0
    assert row["step_time"] is None
    assert "in flight" in str(row["failed_checks"])


def test_positions_and_checks_carry_the_cells_keys(request_row, make_cell):
    readings = [
        Reading(at_s=0.0, drafts=0, accepted_tokens=0, draft_tokens=0),
        Reading(at_s=10.0, drafts=100, accepted_tokens=90, draft_tokens=200, accepted_by_position=(60.0, 30.0)),
    ]
    cell = make_cell([request_row(0.0, [(0.5, 1), (0.6, 2)])], readings=readings, k=2)
    table = summary.of(cell).positions
    assert table.columns.tolist() == ["arm", "workload", "concurrency", "repeat", "source", *acceptance.COLUMNS]
    assert table["marginal"].tolist() == [0.6, 0.3]
    assert table["conditional"].tolist() == [0.6, 0.5]
    assert set(summary.of(cell).checks.columns) >= {"arm", "check", "verdict", "value", "limit", "reason"}
    assert summary.of(cell).checks["verdict"].isin(["PASS", "WARN", "FAIL"]).all()


def test_a_cell_of_over_a_million_events(request_row, make_cell):
    # 256 slots, 60 s, 12.7 ms a step; wall time is printed by --durations, a bound this loose only catches a loop
    steps = 400
    rows = []
    for index in range(3000):
        start = -5.0 + 65.0 * index / 3000
        row = request_row(start, [], ended=False)
        row["event_us"] = (np.arange(1, steps + 1) * 12_700).astype(np.int32)
        row["event_tokens"] = np.ones(steps, dtype=np.int16)
        rows.append(row | {"end_s": start + steps * 0.0127, "output_tokens": steps})
    cell = make_cell(rows, window_s=(5.0, 57.0), concurrency=234)
    began = time.process_time()
    row = summary.of(cell).row
    assert time.process_time() - began < 5.0
    assert row["step_time"] == pytest.approx(12.7)
    assert row["system_throughput"] == pytest.approx(3000 / 65 * steps, rel=0.01)
