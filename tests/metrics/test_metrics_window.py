from __future__ import annotations

import numpy as np
import pytest

from speclab.engines.base import Reading
from speclab.metrics.throughput import answering, in_flight, system_throughput
from speclab.metrics.window import Window, cut


def test_a_request_longer_than_the_window_gives_what_came_inside(request_row, make_cell):
    # one token each half second from 0.5 to 20; of the window from 5 to 15 the first moment counts, the last does not
    row = request_row(0.0, [(0.5 * step, 1) for step in range(1, 41)])
    view = cut(make_cell([row], window_s=(5.0, 15.0)))
    assert system_throughput(view) == 2.0
    assert view.events.time_s.min() == 5.0
    assert view.events.time_s.max() == 14.5
    assert in_flight(view) == 1.0
    assert view.ended.empty
    assert view.counted.empty


def test_neither_lost_nor_counted_twice_at_a_border(request_row, make_cell):
    row = request_row(0.0, [(0.25 * step, 1) for step in range(1, 41)])
    left, right = (cut(make_cell([row], window_s=borders)) for borders in ((0.0, 5.0), (5.0, 10.1)))
    assert len(left.events) + len(right.events) == 40


def test_ended_counts_by_the_end_and_counted_needs_the_start_too(request_row, make_cell):
    rows = [
        request_row(1.0, [(1.5, 1), (6.0, 1)], prompt_id="across the first border"),
        request_row(6.0, [(6.5, 1), (8.0, 1)], prompt_id="inside"),
        request_row(8.0, [(8.5, 1), (12.0, 1)], prompt_id="across the last border"),
        request_row(0.0, [(0.5, 1), (7.0, 1)], prompt_id="warm-up", warm_up=True),
        request_row(6.0, [(6.5, 1)], prompt_id="failed", error="HTTP 500"),
        request_row(9.0, [(9.5, 1)], ended=False, prompt_id="cut off"),
    ]
    view = cut(make_cell(rows, window_s=(5.0, 10.0)))
    assert view.ended["prompt_id"].tolist() == ["across the first border", "inside"]
    assert view.counted["prompt_id"].tolist() == ["inside"]


def test_in_flight_is_a_time_integral(request_row, make_cell):
    rows = [
        request_row(-1.0, [(1.0, 1), (4.0, 1)]),  # 4 s inside, 3 s of it answering
        request_row(4.0, [(5.0, 1)], ended=False),  # cut off: 6 s and 5 s
        request_row(9.0, [], ended=False),  # still waits for its first token: 1 s and 0 s
        request_row(2.0, [(3.0, 1)], ended=False, error="gone"),  # failed after its last event: 1 s and 0 s
    ]
    view = cut(make_cell(rows, window_s=(0.0, 10.0)))
    assert in_flight(view) == pytest.approx(1.2)
    assert answering(view) == pytest.approx(0.8)


def test_counters_are_held_against_events_between_the_readings(request_row, make_cell):
    row = request_row(0.0, [(0.5 * step, 1) for step in range(1, 21)])
    late = [Reading(at_s=2.2, generation_tokens=4), Reading(at_s=8.3, generation_tokens=16)]
    view = cut(make_cell([row], window_s=(2.0, 8.0), readings=late))
    assert len(view.events) == 12
    np.testing.assert_allclose(view.between_readings.time_s, np.arange(2.5, 8.01, 0.5))


def test_nan_is_not_inside():
    assert not Window(0.0, 1.0).holds(np.array([np.nan]))[0]
