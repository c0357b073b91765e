from __future__ import annotations

import pytest

from speclab.metrics import latency
from speclab.metrics.window import cut


def test_time_per_output_token_by_hand(request_row, make_cell):
    # 1 + 3 + 3 tokens, first at 0.5 s, last at 0.74 s: 240 ms for 6 tokens
    view = cut(make_cell([request_row(0.0, [(0.5, 1), (0.62, 3), (0.74, 3)])]))
    assert latency.time_per_output_token(view) == pytest.approx(40.0)
    assert latency.times_per_output_token(view) == pytest.approx([40.0])
    # the same answer's steps take 120 ms: with speculation the two are not one quantity
    assert latency.step_gap(view, 0.5) == pytest.approx(120.0)


def test_mean_weighs_answers_by_their_tokens(request_row, make_cell):
    rows = [
        request_row(0.0, [(1.0, 1), (1.1, 1)]),  # 100 ms for 1 token
        request_row(0.0, [(1.0, 1), *[(1.0 + 0.02 * step, 1) for step in range(1, 10)]]),  # 20 ms for each of 9
    ]
    view = cut(make_cell(rows))
    assert latency.time_per_output_token(view) == pytest.approx((100 + 9 * 20) / 10)
    assert latency.time_per_output_token_quantile(view, 0.5) == pytest.approx(60.0)


def test_usage_decides_not_the_number_of_events(request_row, make_cell):
    view = cut(make_cell([request_row(0.0, [(1.0, 1), (2.0, 4)], output_tokens=11)]))
    assert latency.time_per_output_token(view) == pytest.approx(100.0)


def test_one_token_answers_are_left_out_and_counted(request_row, make_cell):
    view = cut(make_cell([request_row(0.0, [(1.0, 1)]), request_row(1.0, [(2.0, 1), (2.05, 1)])]))
    assert latency.one_token_answers(view) == 1
    assert latency.times_per_output_token(view) == pytest.approx([50.0])
    assert latency.time_per_output_token(view) == pytest.approx(50.0)


def test_only_one_token_answers_have_no_time(request_row, make_cell):
    view = cut(make_cell([request_row(0.0, [(1.0, 1)])]))
    assert latency.time_per_output_token(view) is None
    assert latency.step_gap(view, 0.5) is None


def test_an_answer_that_was_cut_off_still_gives_its_gaps(request_row, make_cell):
    view = cut(make_cell([request_row(0.0, [(9.0, 1), (9.03, 1), (9.07, 1), (10.2, 1)], ended=False)]))
    assert latency.time_per_output_token(view) is None
    assert latency.step_gaps(view) == pytest.approx([30.0, 40.0])  # the last gap ends outside


def test_a_gap_belongs_to_the_event_that_ends_it(request_row, make_cell):
    view = cut(make_cell([request_row(0.0, [(4.9, 1), (5.2, 1), (5.3, 1)])], window_s=(5.0, 10.0)))
    assert latency.step_gaps(view) == pytest.approx([300.0, 100.0])
