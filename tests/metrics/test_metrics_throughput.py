from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from speclab.engines.base import Reading
from speclab.metrics import acceptance, latency, steps, throughput
from speclab.metrics.blocks import blocks
from speclab.metrics.checks.table import verdicts
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


def _untold(row, output_tokens):
    """A request as a server with usage at the end gives it: times of its chunks, and the whole answer's tokens."""
    return row | {"event_tokens": np.zeros(len(row["event_us"]), dtype=np.int16), "output_tokens": output_tokens}


def test_g11_usage_at_the_end_gives_throughput_and_time_per_token_but_no_steps(request_row, make_cell):
    # one slot, an answer a second: its first token after 0.2 s, then 10 chunks of 2 tokens, the last 0.7 s later
    rows = []
    for start in range(10):
        chunks = [(start + 0.2 + 0.07 * index, 0) for index in range(11)]
        rows.append(_untold(request_row(float(start), chunks), 21) | {"end_s": start + 0.95})
    view = cut(make_cell(rows, window_s=(2.0, 8.0)))
    assert not view.tells_tokens_of_events
    assert throughput.system_throughput(view) == pytest.approx(21.0)
    assert throughput.activity_throughput(view) == pytest.approx(6 * 21 / 5.95)
    assert latency.time_per_output_token(view) == pytest.approx(35.0)
    assert throughput.answering(view) == pytest.approx(0.75)
    assert (steps.step_time(view), latency.step_gap(view, 0.5), acceptance.tokens_per_step(view)) == (None, None, None)
    assert blocks(view)["tokens"].sum() == pytest.approx(6 * 21)
    assert blocks(view)["steps"].sum() == 0


def test_g11_answers_that_did_not_end_give_what_the_others_chunks_hold(request_row, make_cell):
    ended = _untold(request_row(0.0, [(1.0 + index, 0) for index in range(5)]), 13)  # 1 and four times 3
    cut_off = request_row(0.0, [(1.0, 0), (2.0, 0), (3.0, 0)], ended=False)
    alone = _untold(request_row(0.0, [(4.0, 0)]), 5)
    view = cut(make_cell([ended, cut_off, alone]))
    assert throughput.system_throughput(view) == pytest.approx((13 + 1 + 3 + 3 + 5) / 10)


def test_g11_a_server_without_a_running_count_fails_no_check_for_it(request_row, make_cell):
    chunks = [[(start + 0.1, 0), (start + 0.99, 0)] for start in range(10)]
    rows = [_untold(request_row(float(start), of_one), 9) for start, of_one in enumerate(chunks)]
    readings = [Reading(at_s=0.0, generation_tokens=0), Reading(at_s=10.0, generation_tokens=90)]
    view = cut(make_cell(rows, readings=readings))
    made = {check.check: check for check in verdicts(view)}
    assert {name for name, check in made.items() if check.verdict == "FAIL"} == set()
    assert made["counters"].verdict == "PASS"
    assert made["usage"].verdict == "WARN"
    assert "running count of tokens" in made["usage"].reason
