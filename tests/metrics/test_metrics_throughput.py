from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from speclab.metrics import throughput
from speclab.metrics.window import cut


def _slot(request_row, step_s: float, answers: int, steps: int, tokens: int, offset_s: float = 0.0):
    """One slot that writes one answer after the other: a first token, then `steps` steps of `tokens`; no waiting."""
    length_s = steps * step_s
    starts = [offset_s + index * length_s for index in range(answers)]
    return [
        request_row(start, [(start, 1), *[(start + step * step_s, tokens) for step in range(1, steps + 1)]])
        for start in starts
    ]


def test_activity_throughput_is_the_reports(request_row, make_cell):
    rows = [
        request_row(1.0, [(1.5, 10), (2.0, 10)]),  # began before the window
        request_row(5.0, [(5.5, 10), (6.0, 10)]),
        request_row(6.0, [(6.5, 10), (9.0, 20)]),
        request_row(9.0, [(9.5, 10)], ended=False),
    ]
    view = cut(make_cell(rows, window_s=(4.0, 10.0)))
    assert throughput.activity_throughput(view) == pytest.approx(50 / 4.0)  # 5.0 to 9.0
    assert throughput.system_throughput(view) == pytest.approx(60 / 6.0)


def test_user_throughput_is_a_mean_of_speeds(request_row, make_cell):
    view = cut(make_cell([request_row(0.0, [(1.0, 1), (1.1, 1)]), request_row(0.0, [(1.0, 1), (1.05, 1)])]))
    assert throughput.user_throughput(view) == pytest.approx((10 + 20) / 2)
    assert throughput.user_throughput_quantile(view, 0.5) == pytest.approx(15.0)


def test_the_report_occupancy_falls_short_where_answers_are_long(request_row, make_cell):
    # four slots, staggered, answers of 2 s: the stretch from first start to last end holds answers that are not counted
    rows = [row for slot in range(4) for row in _slot(request_row, 0.02, 6, 100, 1, offset_s=-0.5 * slot)]
    view = cut(make_cell(rows, window_s=(1.0, 9.0), concurrency=4))
    assert throughput.occupancy(view) == pytest.approx(4.0, rel=0.02)
    assert throughput.answering(view) == pytest.approx(4.0)
    report = throughput.activity_occupancy(view)
    assert report is not None
    assert report < 3.6


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    slots=st.integers(1, 6),
    steps=st.integers(20, 60),
    tokens=st.integers(1, 5),
    step_ms=st.integers(5, 40),
)
def test_littles_law(request_row, make_cell, slots, steps, tokens, step_ms):
    # answers of all shapes written without a pause: rate x time per token = answers being written = slots
    step_s = step_ms / 1e3
    length_s = steps * step_s
    rows = [row for slot in range(slots) for row in _slot(request_row, step_s, 12, steps, tokens, -length_s * slot / 7)]
    view = cut(make_cell(rows, window_s=(length_s, 9 * length_s), concurrency=slots))
    assert throughput.answering(view) == pytest.approx(slots, rel=1e-6)
    assert throughput.answering_by_law(view) == pytest.approx(slots, rel=0.01)
    # `occupancy` also counts each answer's first token, which takes no time here
    assert throughput.occupancy(view) == pytest.approx(slots * (1 + 1 / (steps * tokens)), rel=0.01)


def test_nothing_in_the_window(request_row, make_cell):
    view = cut(make_cell([request_row(0.0, [(11.0, 1), (12.0, 1)])]))
    assert throughput.system_throughput(view) == 0.0
    assert throughput.activity_throughput(view) is None
    assert throughput.user_throughput(view) is None
    assert throughput.occupancy(view) is None
    assert throughput.activity_occupancy(view) is None
