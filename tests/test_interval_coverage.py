"""The known truth, fast: a few dozen labs where the book's page has 200."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from speclab.errors import UserError
from speclab.interval_coverage import engine_lab, experiment
from speclab.interval_coverage.fast_lab import FastLab
from speclab.interval_coverage.held import COLUMNS, FINDINGS, held, intervals, truth_of

DRIFTING = FastLab(drift=0.05)


def shares(lab: FastLab, seeds: int, blocks: int = 5) -> pd.Series:
    return held(intervals(lab, range(seeds), blocks)).set_index("finding")["share"]


def test_the_truth_by_hand():
    lab = FastLab()
    # 1 + 2 x 0.3 tokens a step; (22 + b) ms against (20 + 0.4 b)
    expected = [1.6 * 20.4 / 23, 1.6 * 21.6 / 26, 1.6 * 26.4 / 38, 1.6 * 45.6 / 86]
    np.testing.assert_allclose(lab.true_speed_up, expected)
    # between 16 and 64: 0.1116 above 1 and 0.1516 below
    assert lab.true_crossover == pytest.approx(16 * 4 ** (0.111579 / (0.111579 + 0.151628)), rel=1e-5)
    truth = truth_of(lab)
    assert truth["break_even_length", 1] == pytest.approx(23 / 20.4)
    assert truth["tokens_per_step", 16] == pytest.approx(1.6)


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    share = shares(FastLab(), 60)
    assert set(share.index) == set(FINDINGS)
    assert share.between(0.90, 0.98).all()


def test_blocks_that_are_too_short_give_intervals_that_are_too_narrow():
    assert shares(FastLab(), 30, blocks=20)["speed_up"] < 0.88


def test_drift_between_windows_is_seen_by_repeats_and_not_by_one_window():
    assert shares(DRIFTING, 30)["crossover"] < 0.80
    assert shares(replace(DRIFTING, repeats=3), 24)[["speed_up", "crossover"]].min() >= 0.90


def test_how_often_by_hand():
    rows = pd.DataFrame(
        [
            ("speed_up", "0", 1.0, 1.5, 1.4, 1.3, 1.6, "ok"),
            ("speed_up", "1", 1.0, 1.5, 1.7, 1.6, 1.8, "ok"),
            ("speed_up", "2", 1.0, 1.5, 1.4, np.nan, np.nan, "ok"),  # no interval holds nothing
            ("crossover", "0", np.nan, 30.0, 40.0, 20.0, np.nan, "ok"),
            ("crossover", "1", np.nan, 30.0, np.nan, 64.0, np.nan, "not reached"),
            ("crossover", "2", np.nan, 30.0, np.nan, np.nan, np.nan, "not resolved"),
            ("crossover", "3", np.nan, 30.0, 20.0, 10.0, 29.0, "ok"),
        ],
        columns=COLUMNS,
    )
    table = held(rows).set_index("finding")
    assert table.loc["speed_up", ["intervals", "held"]].tolist() == [3, 1]
    assert table.loc["crossover", ["intervals", "held", "resolved"]].tolist() == [4, 2, 0.5]
    assert table.loc["speed_up", "share"] == pytest.approx(1 / 3)


def test_the_whole_way_over_the_simulated_engine():
    rows = engine_lab.intervals([engine_lab.tables_of_lab("lab09", "ngram-k8", seed) for seed in range(2)])
    assert set(rows["source"]) == {"0", "1"}
    assert (rows["low"] < rows["value"]).all()
    assert (rows["value"] < rows["high"]).all()
    crossings = rows[rows["finding"] == "crossover"]
    assert crossings["status"].tolist() == ["ok", "ok"]
    assert crossings["value"].between(8, 64).all()


def test_the_kept_experiment_says_what_the_book_says():
    kept = experiment.read().set_index(["scenario", "blocks", "finding"])["share"]
    for scenario in ("one repeat", "three repeats", experiment.ENGINE):
        for finding in ("speed_up", "crossover"):
            assert 0.90 <= kept[scenario, 5, finding] <= 0.98, (scenario, finding)
    assert kept["one repeat", 20, "speed_up"] < 0.90
    assert set(kept.index.get_level_values(0)) == {each.name for each in experiment.SCENARIOS} | {experiment.ENGINE}


def test_a_missing_experiment_names_its_command(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECLAB_ROOT", str(tmp_path))
    with pytest.raises(UserError, match=r"python -m speclab\.interval_coverage\.experiment --lab LAB --arm ARM"):
        experiment.read()
