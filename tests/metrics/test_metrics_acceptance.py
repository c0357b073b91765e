from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from speclab.engines.base import Reading
from speclab.metrics import acceptance
from speclab.metrics.steps import ms_per_accepted_token, step_time
from speclab.metrics.window import cut


@pytest.fixture
def vllm_24344(request_row, make_cell):
    """The run of vllm-project/vllm#24344: 5376 tokens, 993 drafts with 3562 tokens accepted, 821 steps without a draft.

    993 steps with a draft bring 993 + 3562 tokens, so that 5376 - 4555 = 821 came one by one. The rest is made up: 583
    drafts of 4 accepted and 410 of 3 (583 * 4 + 410 * 3 = 3562; the run has 0.81 of drafts accepted at the first
    position, 0.66 at the fifth), 5 tokens in every draft (the run has 4960, not 4965), 10 ms a step.
    """
    decode = [5] * 583 + [4] * 410 + [1] * 821
    events = [(0.0, 1), *[(0.01 * step, tokens) for step, tokens in enumerate(decode, start=1)]]
    before = Reading(at_s=0.005, drafts=7, draft_tokens=35, accepted_tokens=10, accepted_by_position=(4, 3, 2, 1, 0, 0))
    after = Reading(
        at_s=19.0, drafts=7 + 993, draft_tokens=35 + 5 * 993, accepted_tokens=10 + 3562,
        accepted_by_position=(4 + 993, 3 + 993, 2 + 993, 1 + 583, 0, 0),
    )  # fmt: skip
    return cut(make_cell([request_row(0.0, events)], window_s=(0.005, 19.0), readings=[before, after], k=5))


def test_reported_length_is_conditional_and_tokens_per_step_is_not(vllm_24344):
    assert acceptance.reported_acceptance_length(vllm_24344) == pytest.approx(4.59, abs=0.005)
    assert acceptance.tokens_per_step(vllm_24344) == pytest.approx(5376 / 1814)
    assert acceptance.tokens_per_step(vllm_24344) == pytest.approx(2.96, abs=0.005)
    assert acceptance.draft_coverage(vllm_24344) == pytest.approx(993 / 1814)
    assert acceptance.draft_tokens_per_draft(vllm_24344) == 5.0


def test_the_three_agree_with_each_other(vllm_24344):
    coverage, reported = acceptance.draft_coverage(vllm_24344), acceptance.reported_acceptance_length(vllm_24344)
    assert coverage is not None
    assert reported is not None
    assert acceptance.tokens_per_step(vllm_24344) == pytest.approx(1 + coverage * (reported - 1))


def test_step_time_and_cost_of_a_token(vllm_24344):
    assert step_time(vllm_24344) == pytest.approx(10.0)
    assert ms_per_accepted_token(vllm_24344) == pytest.approx(10.0 * 1814 / 5376)


def test_positions_end_at_the_k_that_is_drafted(vllm_24344):
    table = acceptance.acceptance_by_position(vllm_24344)
    assert table.columns.tolist() == list(acceptance.COLUMNS)
    assert table["position"].tolist() == [0, 1, 2, 3, 4]  # the server lists six
    np.testing.assert_allclose(table["marginal"], [1, 1, 1, 583 / 993, 0])
    np.testing.assert_allclose(table["conditional"], [1, 1, 1, 583 / 993, 0])
    assert table["reached"].tolist() == [993, 993, 993, 993, 583]


def test_a_position_that_nothing_reached_has_no_conditional(request_row, make_cell):
    readings = [Reading(at_s=0, drafts=0), Reading(at_s=9, drafts=10, accepted_tokens=0, accepted_by_position=(0, 0))]
    table = acceptance.acceptance_by_position(cut(make_cell([request_row(0, [(1, 1)])], readings=readings, k=2)))
    assert table["marginal"].tolist() == [0.0, 0.0]
    assert table["conditional"].isna().tolist() == [False, True]


def test_counters_that_are_not_offered_give_nothing(request_row, make_cell):
    row = request_row(0.0, [(1.0, 1), (1.1, 1)])
    for readings in ([], [Reading(at_s=0.0), Reading(at_s=10.0)]):
        view = cut(make_cell([row], readings=readings, k=3))
        assert acceptance.reported_acceptance_length(view) is None
        assert acceptance.draft_coverage(view) is None
        assert acceptance.draft_tokens_per_draft(view) is None
        assert acceptance.acceptance_by_position(view).empty
        assert acceptance.tokens_per_step(view) == 1.0  # needs no counter


def test_no_drafts_is_a_coverage_of_zero_and_no_length(request_row, make_cell):
    readings = [Reading(at_s=0.0, drafts=3, accepted_tokens=2), Reading(at_s=10.0, drafts=3, accepted_tokens=2)]
    view = cut(make_cell([request_row(0.0, [(1.0, 1), (1.1, 1)])], readings=readings, k=3))
    assert acceptance.draft_coverage(view) == 0.0
    assert acceptance.reported_acceptance_length(view) is None


def test_counters_that_fell_say_nothing(request_row, make_cell):
    readings = [Reading(at_s=0.0, drafts=90, accepted_tokens=80), Reading(at_s=10.0, drafts=5, accepted_tokens=4)]
    view = cut(make_cell([request_row(0.0, [(1.0, 1), (1.1, 1)])], readings=readings, k=3))
    assert acceptance.reported_acceptance_length(view) is None


@given(st.integers(1, 5000), st.floats(0, 1))
def test_wilson_is_scipys(trials, share):
    successes = round(share * trials)
    expected = stats.binomtest(successes, trials).proportion_ci(method="wilson")
    value, low, high = acceptance.wilson(np.array([float(successes)]), np.array([float(trials)]))
    assert value[0] == pytest.approx(successes / trials)
    assert low[0] == pytest.approx(expected.low, abs=1e-9)
    assert high[0] == pytest.approx(expected.high, abs=1e-9)
    assert low[0] <= value[0] <= high[0]


def test_a_share_of_one_lies_in_its_interval():
    trials = np.array([156.0, 177.0, 515.0])  # rounding puts the bounds of these at 1 - 1e-16
    share, low, high = acceptance.wilson(trials, trials)
    assert share.tolist() == high.tolist() == [1.0, 1.0, 1.0]
    assert acceptance.wilson(np.zeros(3), trials)[1].tolist() == [0.0, 0.0, 0.0]
    assert low == pytest.approx(trials / (trials + acceptance.Z_95**2))


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=8))
def test_marginal_is_the_product_of_conditionals(counts):
    accepted = np.array(sorted(counts, reverse=True), dtype=float)
    reached = np.concatenate([[1000.0], accepted[:-1]])
    table = acceptance.with_intervals(np.full(len(accepted), 1000.0), accepted, reached)
    np.testing.assert_allclose(table["conditional"].fillna(0).cumprod(), table["marginal"], atol=1e-12)
    tried = table[table["reached"] > 0]
    assert (tried["conditional_low"] <= tried["conditional"] + 1e-12).all()
    assert (tried["conditional"] <= tried["conditional_high"] + 1e-12).all()


def test_f12_where_a_schedule_asks_for_k_positions_there_are_k(vllm_24344) -> None:
    record = vllm_24344.record

    def positions(k: int) -> list[int]:
        speculation = record.asked.speculation.model_copy(
            update={"num_speculative_tokens_per_batch_size": ((1, 256, k), (257, 512, 5))}
        )
        asked = record.asked.model_copy(update={"speculation": speculation})
        moved = dataclasses.replace(vllm_24344, record=record.model_copy(update={"asked": asked}))
        return acceptance.acceptance_by_position(moved)["position"].tolist()

    assert positions(3) == [0, 1, 2]
    assert positions(0) == []
