from __future__ import annotations

import numpy as np
import pandas as pd

from speclab.metrics.events import flatten


def test_events_of_two_requests_are_laid_end_to_end(request_row):
    table = pd.DataFrame([request_row(1.0, [(1.5, 1), (1.6, 3)]), request_row(2.0, [(2.25, 1)])])
    events = flatten(table)
    assert events.row.tolist() == [0, 0, 1]
    np.testing.assert_allclose(events.time_s, [1.5, 1.6, 2.25])
    assert events.tokens.tolist() == [1, 3, 1]
    assert events.is_first.tolist() == [True, False, True]
    np.testing.assert_allclose(events.gap_s, [np.nan, 0.1, np.nan])
    assert events.decode.tokens.tolist() == [3]


def test_a_delivery_of_nothing_is_no_step(request_row):
    # the empty delivery in front does not become the first token, and the one in between does not halve the gap
    events = flatten(pd.DataFrame([request_row(0.0, [(0.1, 0), (0.2, 1), (0.3, 0), (0.5, 2)])]))
    np.testing.assert_allclose(events.time_s, [0.2, 0.5])
    assert events.is_first.tolist() == [True, False]
    np.testing.assert_allclose(events.gap_s[1], 0.3)


def test_requests_without_events_leave_no_trace(request_row):
    table = pd.DataFrame([request_row(0.0, [], ended=False), request_row(0.0, [(0.4, 1), (0.5, 1)])])
    assert flatten(table).row.tolist() == [1, 1]


def test_no_requests_at_all(make_cell):
    assert len(flatten(make_cell([]).requests)) == 0
