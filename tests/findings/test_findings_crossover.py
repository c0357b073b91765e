from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from speclab.findings.crossover import Crossing, crossover

C = [1, 4, 16, 64, 128, 256]


def test_by_hand():
    # from 1.2 at 64 to 0.8 at 256: 1 is half way, and half way between 64 and 256 in the logarithm is 128
    assert crossover([64, 256], [1.2, 0.8]) == Crossing(pytest.approx(128.0), None, None, "ok", 2)


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


@given(st.lists(st.floats(0.2, 3.0), min_size=6, max_size=6))
def test_the_order_of_the_points_does_not_matter(ratio):
    assert crossover(C[::-1], ratio[::-1]) == crossover(C, ratio)


@given(st.lists(st.floats(0.2, 3.0), min_size=2, max_size=6))
def test_a_crossing_lies_between_a_gain_and_a_loss(ratio):
    found = crossover(C[: len(ratio)], ratio)
    assume(found.status == "ok")
    before = [value for at, value in zip(C, ratio, strict=False) if at < found.value - 1e-9]
    after = [value for at, value in zip(C, ratio, strict=False) if at > found.value + 1e-9]
    assert before[-1] > 1
    assert all(value <= 1 for value in after)


def test_not_reached_says_on_which_side():
    assert crossover(C, [2, 2, 2, 1.5, 1.3, 1.1]) == Crossing(None, 256.0, None, "not reached", 6)
    assert crossover(C, [0.9] * 6) == Crossing(None, None, 1.0, "not reached", 6)
    # slower at first, faster at the top: no crossing downwards
    assert crossover(C, [0.9, 0.95, 1.1, 1.2, 1.2, 1.1]) == Crossing(None, 256.0, None, "not reached", 6)


def test_a_late_start_still_has_its_downward_crossing():
    found = crossover(C, [0.9, 1.2, 1.3, 1.1, 0.9, 0.8])
    assert found.status == "ok"
    assert found.value == pytest.approx(64 * 2**0.5)


def test_a_curve_that_comes_back_is_not_resolved():
    assert crossover(C, [1.2, 0.99, 1.01, 0.98, 0.9, 0.8]) == Crossing(None, None, None, "not resolved", 6)
    assert crossover(C, [1.2, 0.99, 0.9, 0.9, 1.1, 1.2]) == Crossing(None, None, None, "not resolved", 6)


def test_no_interpolation_over_a_point_that_failed():
    curve, at = [1.5, 1.2, 0.9, 0.8], [1, 4, 64, 128]
    assert crossover(at, curve, unusable=[256]).status == "ok"
    assert crossover(at, curve, unusable=[16]) == Crossing(None, None, None, "not resolved", 4)


def test_nothing_to_go_by():
    assert crossover([], []) == Crossing(None, None, None, "not resolved", 0)
    assert crossover([1, 4], [np.nan, np.nan]).status == "not resolved"


def curves(ratio, spread, draws=4000):
    """Resampled curves: each point scatters by itself."""
    return np.asarray(ratio) * np.exp(np.random.default_rng(1).normal(0, spread, (draws, len(ratio))))


def test_the_interval_of_a_steep_curve_by_hand():
    # one point scatters: 1.2 by 0.1 (normal). From 64 to 256 the crossing is 64 x 4^((r - 1) / (r - 0.8))
    drawn = np.column_stack([1.2 + 0.1 * np.random.default_rng(2).standard_normal(20_000), np.full(20_000, 0.8)])
    found = crossover([64, 256], [1.2, 0.8], draws=drawn)
    low, high = (64 * 4 ** ((r - 1) / (r - 0.8)) for r in (1.2 - 0.196, 1.2 + 0.196))
    assert found.status == "ok"
    assert (found.low, found.high) == (pytest.approx(low, rel=0.02), pytest.approx(high, rel=0.02))


def test_an_interval_may_reach_beyond_the_range():
    found = crossover(C, [2, 1.8, 1.5, 1.3, 1.1, 0.99], draws=curves([2, 1.8, 1.5, 1.3, 1.1, 0.99], 0.02))
    assert (found.status, found.high) == ("ok", None)
    assert 128 < found.low < found.value < 256


def test_never_below_one_needs_the_scatter_to_say_so_too():
    certain = [2, 1.8, 1.5, 1.3, 1.2, 1.1]
    assert crossover(C, certain, draws=curves(certain, 0.02)) == Crossing(None, 256.0, None, "not reached", 6)
    # 1.01 at the top, give or take 5%: it may well have crossed
    doubtful = crossover(C, [2, 1.8, 1.5, 1.3, 1.2, 1.01], draws=curves([2, 1.8, 1.5, 1.3, 1.2, 1.01], 0.05))
    assert (doubtful.status, doubtful.value, doubtful.high) == ("not resolved", None, None)
    assert 128 < doubtful.low < 256
    slow = [0.9, 0.8, 0.8, 0.7, 0.7, 0.7]
    assert crossover(C, slow, draws=curves(slow, 0.02)) == Crossing(None, None, 1.0, "not reached", 6)


def test_an_interval_that_spans_the_range_resolves_nothing():
    flat = [1.03, 1.02, 1.01, 0.99, 0.98, 0.97]
    assert crossover(C, flat, draws=curves(flat, 0.3)) == Crossing(None, None, None, "not resolved", 6)


def test_a_point_without_draws_leaves_no_interval():
    drawn = curves([1.2, 0.8], 0.01)
    drawn[:, 0] = np.nan
    assert crossover([64, 256], [1.2, 0.8], draws=drawn) == Crossing(pytest.approx(128.0), None, None, "ok", 2)
