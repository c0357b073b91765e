from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from speclab.findings.intervals import (
    Between,
    between,
    bounds,
    deviations,
    generator,
    joined,
    of_repeats,
    resample,
)

RATIO = np.array([[1.0], [-1.0]])
NO_DRIFT = [Between()]
NORMAL = np.random.default_rng(3).standard_normal((2000, 1))


def sums_of(values):
    """Blocks of one repeat, from the ratio in each: (1, blocks, 2)."""
    values = np.asarray(values, dtype=float)
    return np.stack([values, np.ones_like(values)], axis=-1)[None]


def test_neighbours_are_joined():
    sums = np.arange(10.0).reshape(1, 10, 1)
    assert joined(sums, 5)[0, :, 0].tolist() == [1, 5, 9, 13, 17]
    assert joined(sums, 3)[0, :, 0].tolist() == [0 + 1 + 2, 3 + 4 + 5, 6 + 7 + 8 + 9]
    assert joined(sums, 20) is sums


def test_blocks_give_students_interval_of_a_mean():
    # for a mean of independent blocks the answer is in every textbook: mean +- t(n - 1) s / sqrt(n)
    values = 100 + np.array([1.0, -2.0, 0.5, 1.5, -1.0, 0.0, 2.0, -2.0])
    place = resample(sums_of(values), RATIO, generator("a"), 20_000)
    drawn = deviations(place, NO_DRIFT, np.zeros((20_000, 1)))[:, 0]
    low, high = bounds(values.mean() * np.exp(drawn))
    margin = stats.t.ppf(0.975, 7) * values.std(ddof=1) / 8**0.5
    assert (low, high) == (pytest.approx(100 - margin, abs=0.1), pytest.approx(100 + margin, abs=0.1))


def test_a_pair_shares_what_is_common():
    # the host slows both arms down in the same blocks: the ratio does not scatter at all
    common = np.array([1.0, 0.5, 2.0, 0.7, 1.3])
    sums = np.stack([1.5 * common, common], axis=-1)[None]
    drawn = deviations(resample(sums, RATIO, generator("a")), NO_DRIFT, NORMAL)
    assert np.abs(drawn).max() < 1e-12


def test_repeats_that_differ_widen_the_interval():
    place = resample(np.concatenate([sums_of([1.0, 1.01, 0.99, 1.0])] * 3), RATIO, generator("a"))
    apart = [Between(0.1**2, 40.0)]
    low, high = bounds(np.exp(deviations(place, apart, NORMAL)[:, 0]))
    # 10% a repeat, three of them, 40 degrees of freedom; 4% of t(40) from the blocks are too little to see
    margin = stats.t.ppf(0.975, 40) * 0.1 / 3**0.5
    assert (np.log(low), np.log(high)) == (pytest.approx(-margin, rel=0.08), pytest.approx(margin, rel=0.08))


def test_how_far_repeats_lie_apart_is_asked_of_all_places():
    # (0.04 - 0.01, 2 degrees) and (0.02 - 0.01, 1 degree); a place with one repeat has no say
    found = between([0.04, 0.02, np.nan], [0.01, 0.01, 5.0], [3, 2, 1])
    assert found.variance == pytest.approx((2 * 0.03 + 0.01) / 3)
    assert found.freedom == 3.0
    # blocks explain it all
    assert between([0.01], [0.02], [3]).variance == 0.0
    assert between([], [], []) == Between()


def test_what_cannot_be_resampled_has_no_interval():
    two_blocks = deviations(resample(sums_of([1.0, 2.0]), RATIO, generator("a")), NO_DRIFT, NORMAL)
    assert np.isnan(two_blocks).all()
    # nothing came in three of four blocks: some resamples hold nothing at all
    empty = deviations(resample(sums_of([0.0, 0.0, 5.0, 0.0]), RATIO, generator("a")), NO_DRIFT, NORMAL)
    assert np.isnan(bounds(empty[:, 0])).all()


def test_the_same_place_gives_the_same_draws_and_another_place_others():
    sums = sums_of([1.0, 2.0, 3.0, 4.0])
    same = [resample(sums, RATIO, generator("chat", 4)).shape for _ in range(2)]
    assert np.array_equal(*same)
    assert not np.array_equal(same[0], resample(sums, RATIO, generator("chat", 16)).shape)


def test_infinite_draws_count_as_such():
    draws = np.concatenate([np.full(50, -np.inf), np.arange(900.0), np.full(50, np.inf)])
    assert bounds(draws) == (-np.inf, np.inf)
    assert bounds(draws, 0.8) == (49.0, 849.0)


def test_repeats_by_students_t():
    # 1, 2, 3: mean 2, s = 1, t(2) = 4.303
    assert of_repeats(np.array([1.0, 2.0, 3.0])) == pytest.approx((2 - 4.303 / 3**0.5, 2 + 4.303 / 3**0.5), abs=1e-3)
    assert np.isnan(of_repeats(np.array([1.0]))).all()
