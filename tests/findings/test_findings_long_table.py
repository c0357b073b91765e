from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from speclab.errors import UserError
from speclab.findings.catalogue import BY_NAME
from speclab.findings.long_table import COLUMNS, WHOLE, findings, overview
from speclab.findings.readings import READINGS, side_by_side
from speclab.replications import published
from speclab.results import strict_json

K = {"baseline": 0, "ngram-k8": 8}


def _value(table, finding, **where):
    rows = table[table["finding"] == finding]
    for column, value in where.items():
        rows = rows[rows[column] == value]
    assert len(rows) == 1
    return rows.iloc[0]


@pytest.fixture
def lab9(cell_row):
    """Lab 9, section 05, under the reading that 2.00 is conditional: 15% of the steps draft, the step is 7.8 ms."""
    tokens = 1 + 0.15 * (2.00 - 1)
    return pd.DataFrame(
        [
            cell_row("baseline", 1, system_throughput=160.0, user_throughput=164.2, step_time=6.09,
                     time_per_output_token=6.09, tokens_per_step=1.0, occupancy=0.99),
            cell_row("ngram-k8", 1, system_throughput=144.0, user_throughput=150.0, step_time=6.78 * tokens,
                     time_per_output_token=6.78, tokens_per_step=tokens, ms_per_accepted_token=6.78,
                     reported_acceptance_length=2.00, draft_coverage=0.15, occupancy=0.98),
        ]
    )  # fmt: skip


def test_lab_9s_n_gram_under_both_readings(lab9):
    table = findings(lab9, pd.DataFrame(), K)
    # the report: 13.56 ms an iteration, 13.56 / 6.09 = 2.23 tokens to break even
    assert _value(table, "implied_step_time", arm="ngram-k8")["value"] == pytest.approx(13.56)
    assert _value(table, "implied_break_even_length", arm="ngram-k8")["value"] == pytest.approx(2.23, abs=0.005)
    # the steps: 7.80 ms, 1.28 tokens
    assert _value(table, "break_even_length", arm="ngram-k8")["value"] == pytest.approx(7.797 / 6.09)
    assert _value(table, "drafting_time", arm="ngram-k8")["value"] == pytest.approx(7.797 - 6.09)
    assert _value(table, "drafting_time_per_position", arm="ngram-k8")["value"] == pytest.approx(1.707 / 8)
    assert _value(table, "speed_up")["value"] == pytest.approx(0.9)
    both = table[(table["arm"] == "ngram-k8") & table["concurrency"].notna()].set_index("finding")["value"]
    assert both["tokens_per_step"] == pytest.approx(1.15)
    # a loss either way: what comes back is below what is needed
    assert both["reported_acceptance_length"] < both["implied_break_even_length"]
    assert both["tokens_per_step"] < both["break_even_length"]


def test_columns_units_and_order(lab9):
    table = findings(lab9, pd.DataFrame(), K)
    assert table.columns.tolist() == COLUMNS
    assert table["unit"].notna().all()
    places = [list(BY_NAME).index(finding) for finding in table["finding"]]
    assert places == sorted(places)
    assert set(table["source"]) == {"simulated (h100-sxm)"}


def test_the_baseline_has_its_own_rows_and_no_comparison(lab9):
    of_baseline = findings(lab9, pd.DataFrame(), K).query("arm == 'baseline'")
    assert {"step_time", "system_throughput", "tokens_per_step"} <= set(of_baseline["finding"])
    assert not {"speed_up", "break_even_length", "drafting_time", "draft_coverage"} & set(of_baseline["finding"])


def test_repeats_are_pooled_in_pairs(cell_row):
    cells = pd.DataFrame(
        [
            cell_row(arm, 4, repeat=repeat, system_throughput=rate)
            for arm, rates in (("baseline", (100.0, 200.0)), ("ngram-k8", (110.0, 260.0)))
            for repeat, rate in enumerate(rates)
        ]
    )
    row = _value(findings(cells, pd.DataFrame(), K), "speed_up")
    # all tokens of the arm over all of the baseline, not (1.1 + 1.3) / 2
    assert row["value"] == pytest.approx((110 + 260) / (100 + 200))
    assert row["n"] == 2
    # two repeats: Student's t with one degree of freedom, 12.706, on the logarithms of 1.1 and 1.3
    margin = np.exp(12.706 * np.log(1.3 / 1.1) / 2)
    assert (row["low"], row["high"]) == (
        pytest.approx(row["value"] / margin, rel=1e-3),
        pytest.approx(row["value"] * margin, rel=1e-3),
    )


def test_a_single_repeat_without_blocks_has_no_interval(lab9):
    row = _value(findings(lab9, pd.DataFrame(), K), "speed_up")
    assert (row["n"], row["status"]) == (1, "ok")
    assert np.isnan(row["low"])
    assert np.isnan(row["high"])


def test_a_failed_check_leaves_the_average_and_is_shown_where_alone(cell_row):
    rows = [cell_row("baseline", c, repeat=r, system_throughput=100.0) for c in (1, 4) for r in (0, 1)]
    rows += [
        cell_row("ngram-k8", 1, repeat=0, system_throughput=150.0),
        cell_row("ngram-k8", 1, repeat=1, system_throughput=90.0, failed_checks="occupancy"),
        cell_row("ngram-k8", 4, repeat=0, system_throughput=120.0, failed_checks="occupancy"),
        cell_row("ngram-k8", 4, repeat=1, status="failed", failure="hung: no answer"),
    ]
    table = findings(pd.DataFrame(rows), pd.DataFrame(), K)
    one, four = (_value(table, "speed_up", concurrency=c) for c in (1, 4))
    assert (one["value"], one["n"], one["status"]) == (1.5, 1, "ok")
    assert (four["value"], four["n"], four["status"]) == (1.2, 1, "failed check")


def test_a_failed_cell_is_a_row_without_a_value(cell_row):
    cells = pd.DataFrame(
        [cell_row("baseline", 1, system_throughput=100.0), cell_row("ngram-k8", 1, status="failed", failure="hung: x")]
    )
    row = _value(findings(cells, pd.DataFrame(), K), "speed_up")
    assert np.isnan(row["value"])
    assert (row["status"], row["n"]) == ("failed check", 0)


def test_a_baseline_that_failed_its_check_spoils_the_ratio_and_not_the_arm(cell_row):
    cells = pd.DataFrame(
        [
            cell_row("baseline", 1, system_throughput=100.0, failed_checks="stationarity"),
            cell_row("ngram-k8", 1, system_throughput=150.0),
        ]
    )
    table = findings(cells, pd.DataFrame(), K)
    assert _value(table, "speed_up")["status"] == "failed check"
    assert _value(table, "system_throughput", arm="ngram-k8")["status"] == "ok"


def test_a_place_without_a_baseline_is_not_resolved(cell_row):
    cells = pd.DataFrame(
        [
            cell_row("baseline", 1, system_throughput=100.0),
            cell_row("ngram-k8", 1, system_throughput=150.0),
            cell_row("ngram-k8", 4, system_throughput=300.0),
            cell_row("ngram-k8", 1, workload="revision", system_throughput=300.0),
        ]
    )
    table = findings(cells, pd.DataFrame(), K)
    alone = _value(table, "speed_up", workload="chat", concurrency=4)
    assert np.isnan(alone["value"])
    assert alone["status"] == "not resolved"
    assert _value(table, "crossover", workload="revision")["status"] == "not resolved"
    assert _value(table, "system_throughput", arm="ngram-k8", concurrency=4)["value"] == 300.0


def test_a_baseline_of_another_device_is_no_baseline(cell_row):
    cells = pd.DataFrame(
        [
            cell_row("baseline", 1, system_throughput=100.0),
            cell_row("ngram-k8", 1, system_throughput=150.0, source="measured (vllm 0.33.0, h100-sxm)"),
        ]
    )
    assert _value(findings(cells, pd.DataFrame(), K), "speed_up")["status"] == "not resolved"


def test_without_any_baseline(cell_row):
    table = findings(pd.DataFrame([cell_row("ngram-k8", 1, system_throughput=150.0)]), pd.DataFrame(), K)
    assert _value(table, "system_throughput")["value"] == 150.0
    assert set(table.loc[table["finding"].isin(["speed_up", "crossover"]), "status"]) == {"not resolved"}


def test_an_arm_that_the_lab_does_not_know(lab9):
    with pytest.raises(UserError, match="unknown arms: ngram-k8"):
        findings(lab9, pd.DataFrame(), {"baseline": 0})


def test_crossover_without_blocks_has_a_value_and_no_interval(cell_row):
    cells = pd.DataFrame(
        [cell_row("baseline", c, system_throughput=100.0) for c in (16, 64, 256)]
        + [cell_row("ngram-k8", c, system_throughput=rate) for c, rate in ((16, 150.0), (64, 120.0), (256, 80.0))]
    )
    row = _value(findings(cells, pd.DataFrame(), K), "crossover")
    assert row["value"] == pytest.approx(128.0)
    assert (row["n"], row["unit"], row["status"]) == (3, "requests", "ok")
    assert row[["low", "high"]].isna().all()
    assert np.isnan(row["concurrency"])


def test_positions_become_rows(lab9, position_rows):
    positions = position_rows("ngram-k8", 1, 1000, [345, 231, 154, 103, 69, 46, 31, 21])
    table = findings(lab9, positions, K)
    marginal = table.query("finding == 'acceptance_by_position'")
    assert marginal["value"].tolist() == [0.345, 0.231, 0.154, 0.103, 0.069, 0.046, 0.031, 0.021]
    assert marginal["position"].tolist() == list(range(8))
    assert (marginal["n"] == 1000).all()
    last = _value(table, "acceptance_by_position_conditional", position=7)
    assert last["value"] == pytest.approx(21 / 31)
    assert last["n"] == 31
    length = _value(table, "reported_acceptance_length")
    assert length["n"] == 1000
    assert length["low"] < 2.00 < length["high"]
    assert _value(table, "acceptance_drift")["status"] == "not resolved"


def test_json_is_flat_and_has_nulls_for_what_is_missing(lab9, position_rows):
    table = findings(lab9, position_rows("ngram-k8", 1, 10, [5, 0, 0]), K)
    rows = json.loads(strict_json.dumps(strict_json.rows(table, WHOLE)))
    assert all(list(row) == COLUMNS for row in rows)
    assert all(not isinstance(value, (dict, list)) for row in rows for value in row.values())
    crossing = next(row for row in rows if row["finding"] == "crossover")
    assert (crossing["value"], crossing["concurrency"], crossing["high"], crossing["low"]) == (None, None, 1.0, None)
    at_one = next(row for row in rows if row["finding"] == "speed_up")
    assert (at_one["concurrency"], at_one["value"]) == (1, pytest.approx(0.9))
    # nothing reached position 2
    unreached = [row for row in rows if row["finding"].endswith("conditional") and row["position"] == 2]
    assert [row["value"] for row in unreached] == [None]


def test_the_table_is_the_same_from_a_csv(lab9, position_rows, tmp_path):
    positions = position_rows("ngram-k8", 1, 1000, [345, 231])
    for name, frame in (("cells", lab9), ("positions", positions)):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    again = [pd.read_csv(tmp_path / f"{name}.csv") for name in ("cells", "positions")]
    pd.testing.assert_frame_equal(findings(*again, K), findings(lab9, positions, K))


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rates=st.lists(st.tuples(st.floats(10, 1e4), st.floats(10, 1e4)), min_size=2, max_size=5),
    scale=st.floats(0.01, 100),
)
def test_ratios_do_not_see_how_fast_the_machine_is(cell_row, rates, scale):
    def ratios(factor):
        cells = pd.DataFrame(
            [
                cell_row(arm, 4**index, system_throughput=rate * factor, user_throughput=rate * factor)
                for index, pair in enumerate(rates)
                for arm, rate in zip(K, pair, strict=True)
            ]
        )
        table = findings(cells, pd.DataFrame(), K)
        return table.loc[table["finding"].isin(["speed_up", "speed_up_mean_of_requests"]), "value"].to_numpy()

    np.testing.assert_allclose(ratios(scale), ratios(1.0), rtol=1e-9)


def test_both_readings_stand_beside_lab_9s(lab9):
    table = findings(lab9, pd.DataFrame(), K)
    both = side_by_side(table, "ngram-k8", 1, published.read("lab09"), "ngram-k8").set_index("finding")
    assert both.index.tolist() == list(READINGS)
    assert both.loc["implied_break_even_length", ["value", "published"]].tolist() == pytest.approx(
        [2.2266, 2.23], abs=1e-4
    )
    assert both.loc["reported_acceptance_length", ["value", "published"]].tolist() == [2.00, 2.00]
    assert both.loc["implied_step_time", "published"] == 13.56
    # what the report did not measure has no figure of its own
    assert np.isnan(both.loc["break_even_length", "published"])
    assert both.loc["break_even_length", "value"] == pytest.approx(1.2803, abs=1e-4)


def test_the_overview_has_a_row_for_every_finding(lab9):
    table = overview(findings(lab9, pd.DataFrame(), K)).set_index("finding")
    assert table.index.tolist() == list(BY_NAME)
    assert table.loc["step_time", ["unit", "places", "ok"]].tolist() == ["ms", 2, 2]
    assert table.loc["step_time", ["least", "most"]].tolist() == pytest.approx([6.09, 6.78 * 1.15])
    assert (table.loc["crossover", "places"], table.loc["crossover", "ok"]) == (1, 0)
    assert np.isnan(table.loc["crossover", "least"])
    assert table.loc["best_k", "places"] == 0
