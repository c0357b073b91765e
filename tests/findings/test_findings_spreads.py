from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from speclab.findings.long_table import with_draws
from speclab.findings.pairs import OK
from speclab.metrics.blocks import COLUMNS

K = {"baseline": 0, "ngram-k8": 8, "eagle3-k3": 3}


@pytest.fixture
def lab(cell_row):
    """Cells and blocks from tokens per block: arm -> concurrency -> repeats -> blocks of 2 s."""

    def build(tokens, **given):
        cells, blocks = [], []
        for arm, by_concurrency in tokens.items():
            for concurrency, repeats in by_concurrency.items():
                for repeat, per_block in enumerate(repeats):
                    per_block = np.asarray(per_block, dtype=float)
                    part = pd.DataFrame({"block": range(len(per_block)), "seconds": 2.0, "tokens": per_block})
                    part = part.assign(decode_tokens=per_block, steps=per_block / 2, gap_ms=10 * per_block)
                    cell = cell_row(
                        arm, concurrency, repeat=repeat,
                        system_throughput=per_block.sum() / (2 * len(per_block)), step_time=20.0, tokens_per_step=2.0,
                        **given.get(arm, {}),
                    )  # fmt: skip
                    cells.append(cell)
                    keys = {name: cell[name] for name in ("arm", "workload", "concurrency", "repeat", "source")}
                    blocks.append(part.reindex(columns=list(COLUMNS)).assign(**keys))
        return pd.DataFrame(cells), pd.concat(blocks, ignore_index=True)

    return build


def found(cells, blocks):
    return with_draws(cells, pd.DataFrame(), K, blocks=blocks)


def row_of(table, finding, **where):
    rows = table[table["finding"] == finding]
    for column, value in where.items():
        rows = rows[rows[column] == value]
    assert len(rows) == 1
    return rows.iloc[0]


STEADY = [100.0, 104.0, 96.0, 102.0, 98.0]
FAST = [151.0, 149.0, 147.0, 155.0, 148.0]


def test_a_speed_up_has_an_interval_from_its_blocks(lab):
    table, draws = found(*lab({"baseline": {4: [STEADY]}, "ngram-k8": {4: [FAST]}}))
    row = row_of(table, "speed_up")
    assert (row["value"], row["n"], row["status"]) == (pytest.approx(1.5), 1, OK)
    assert 1.4 < row["low"] < 1.5 < row["high"] < 1.6
    key = ("speed_up", row["source"], "ngram-k8", "chat", 4)
    assert np.median(draws[key]) == pytest.approx(1.5, rel=0.01)
    assert np.mean((draws[key] < row["low"]) | (draws[key] > row["high"])) == pytest.approx(0.05, abs=0.002)


def test_a_difference_scatters_as_the_pair_does(lab):
    # all blocks of both arms alike: a step takes 20 ms in each of them, the difference is 0 and certain
    table, _ = found(*lab({"baseline": {4: [STEADY]}, "ngram-k8": {4: [FAST]}}))
    row = row_of(table, "drafting_time")
    assert row[["value", "low", "high"]].tolist() == pytest.approx([0.0, 0.0, 0.0], abs=1e-9)
    assert row_of(table, "drafting_time_per_position")[["low", "high"]].tolist() == pytest.approx([0, 0], abs=1e-9)


def test_drift_between_repeats_widens_every_place_of_the_lab(lab):
    def interval(second):
        repeats = [FAST, [second * tokens for tokens in FAST], FAST]
        tokens = {
            "baseline": {1: [STEADY] * 3, 4: [STEADY] * 3},
            "ngram-k8": {1: repeats, 4: [FAST] * 3},
        }
        table, _ = found(*lab(tokens))
        row = row_of(table, "speed_up", concurrency=4)
        return row["high"] - row["low"]

    # another place's repeats lie apart: here they do not, by luck, and the interval says so
    assert interval(1.3) > 2 * interval(1.0)


def test_arms_at_one_place_are_resampled_together(lab):
    _, draws = found(*lab({"baseline": {4: [STEADY]}, "ngram-k8": {4: [FAST]}, "eagle3-k3": {4: [FAST]}}))
    source = next(iter(draws))[1]
    ours, theirs = (draws["speed_up", source, arm, "chat", 4] for arm in ("ngram-k8", "eagle3-k3"))
    np.testing.assert_allclose(ours / theirs, 1.0)


def test_a_repeat_that_failed_its_check_is_not_resampled(lab):
    cells, blocks = lab({"baseline": {4: [STEADY, STEADY]}, "ngram-k8": {4: [FAST, [1.0] * 5]}})
    cells.loc[(cells["arm"] == "ngram-k8") & (cells["repeat"] == 1), "failed_checks"] = "stationarity"
    table, _ = found(cells, blocks)
    row = row_of(table, "speed_up")
    assert (row["value"], row["n"]) == (pytest.approx(1.5), 1)
    assert row["low"] > 1.3
    # which tokens came is another question than how fast they did
    assert row_of(table, "tokens_per_step", arm="ngram-k8")["n"] == 2


def test_all_cells_failed_shows_no_interval(lab):
    cells, blocks = lab({"baseline": {4: [STEADY]}, "ngram-k8": {4: [FAST]}}, baseline={"failed_checks": "in flight"})
    row = row_of(found(cells, blocks)[0], "speed_up")
    assert (row["value"], row["status"]) == (pytest.approx(1.5), "failed check")
    assert row[["low", "high"]].isna().all()


def test_three_requests_give_no_interval_where_a_block_is_empty(lab):
    table, _ = found(*lab({"baseline": {1: [STEADY]}, "ngram-k8": {1: [[90.0, 0.0, 0.0, 80.0, 0.0]]}}))
    row = row_of(table, "speed_up")
    assert row["value"] == pytest.approx(170 / 500)
    assert row[["low", "high"]].isna().all()


def test_a_slow_sweep_is_slow_at_each_of_its_points(lab):
    repeats = [FAST, [1.3 * tokens for tokens in FAST], FAST]
    tokens = {"baseline": {at: [STEADY] * 3 for at in (1, 4)}, "ngram-k8": {1: repeats, 4: repeats}}
    table, draws = found(*lab(tokens))
    source = table["source"].iloc[0]
    one, four = (draws["speed_up", source, "ngram-k8", "chat", at] for at in (1, 4))
    assert np.corrcoef(np.log(one), np.log(four))[0, 1] > 0.7


def test_the_counters_reading_has_an_interval_of_its_own(lab):
    cells, blocks = lab({"baseline": {1: [STEADY]}, "ngram-k8": {1: [FAST]}})
    cells["time_per_output_token"], cells["reported_acceptance_length"] = 10.0, 2.0
    even = np.tile([9.0, 10.0, 11.0, 9.5, 10.5], 2)
    blocks["answer_ms"], blocks["answer_tokens"], blocks["drafts"], blocks["accepted"] = 10 * even, even, 40.0, 40.0
    row = row_of(found(cells, blocks)[0], "implied_step_time")
    # each block: 10 ms a token, (40 + 40) / 40 tokens a drafted step: no scatter at all
    assert row[["value", "low", "high"]].tolist() == pytest.approx([20.0, 20.0, 20.0])
    blocks.loc[blocks["arm"] == "ngram-k8", "accepted"] = [20.0, 60.0, 40.0, 30.0, 50.0]
    row = row_of(found(cells, blocks)[0], "implied_step_time")
    # tokens of a drafted step by block: 1.5, 2.5, 2, 1.75, 2.25; t(4) s / sqrt(5) = 2.776 x 0.395 / 2.236 = 0.49 of 2
    assert row[["low", "high"]].tolist() == pytest.approx([20 * np.exp(-0.245), 20 * np.exp(0.245)], rel=0.05)
