from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from speclab.findings.crossover import Crossing, crossover

C = [1, 4, 16, 64, 128, 256]


def test_by_hand():
    # from 1.2 at 64 to 0.8 at 256: 1 is half way, and half way between 64 and 256 in the logarithm is 128
    assert crossover([64, 256], [1.2, 0.8]) == Crossing(pytest.approx(128.0), 64.0, 256.0, "ok", 2)


def test_a_point_on_the_line_is_the_crossing():
    assert crossover(C, [2, 1.8, 1.5, 1.0, 0.9, 0.8]).value == pytest.approx(64.0)


@given(
    at=st.floats(1.01, 255.9),
    slope=st.floats(0.01, 2.0),
)
def test_exact_on_a_log_linear_curve(at, slope):
    ratio = 1 - slope * (np.log(C) - np.log(at))
    found = crossover(C, ratio)
    assert found.status == "ok"
    assert found.value == pytest.approx(at, rel=1e-9)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= at * (1 + 1e-9)
    assert at <= found.high * (1 + 1e-9)


@given(st.lists(st.floats(0.2, 3.0), min_size=6, max_size=6))
def test_the_order_of_the_points_does_not_matter(ratio):
    assert crossover(C[::-1], ratio[::-1]) == crossover(C, ratio)


@given(st.lists(st.floats(0.2, 3.0), min_size=2, max_size=6))
def test_a_crossing_lies_between_a_gain_and_a_loss(ratio):
    found = crossover(C[: len(ratio)], ratio)
    assume(found.status == "ok")
    by_concurrency = dict(zip(C, ratio, strict=False))
    assert by_concurrency[int(found.low)] > 1 >= by_concurrency[int(found.high)]
    assert found.low <= found.value <= found.high


def test_not_reached_says_on_which_side():
    assert crossover(C, [2, 2, 2, 1.5, 1.3, 1.1]) == Crossing(None, 256.0, None, "not reached", 6)
    assert crossover(C, [0.9] * 6) == Crossing(None, None, 1.0, "not reached", 6)
    # slower at first, faster at the top: no crossing downwards
    assert crossover(C, [0.9, 0.95, 1.1, 1.2, 1.2, 1.1]) == Crossing(None, 256.0, None, "not reached", 6)


def test_a_late_start_still_has_its_downward_crossing():
    found = crossover(C, [0.9, 1.2, 1.3, 1.1, 0.9, 0.8])
    assert (found.status, found.low, found.high) == ("ok", 64.0, 128.0)


def test_a_curve_that_comes_back_is_not_resolved():
    assert crossover(C, [1.2, 0.99, 1.01, 0.98, 0.9, 0.8]) == Crossing(None, 1.0, 64.0, "not resolved", 6)
    assert crossover(C, [1.2, 0.99, 0.9, 0.9, 1.1, 1.2]) == Crossing(None, 1.0, None, "not resolved", 6)


def test_no_interpolation_over_a_point_that_failed():
    curve, at = [1.5, 1.2, 0.9, 0.8], [1, 4, 64, 128]
    assert crossover(at, curve, unusable=[256]).status == "ok"
    assert crossover(at, curve, unusable=[16]) == Crossing(None, 4.0, 64.0, "not resolved", 4)


def test_nothing_to_go_by():
    assert crossover([], []) == Crossing(None, None, None, "not resolved", 0)
    assert crossover([1, 4], [np.nan, np.nan]).status == "not resolved"
