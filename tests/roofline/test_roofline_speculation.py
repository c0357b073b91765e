from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speclab.roofline.speculation import (
    accepted_counts,
    conditional,
    flat_marginal,
    operations_factor,
    speed_up,
    tokens_per_pass,
    tokens_per_pass_flat,
)


@pytest.mark.parametrize(
    ("alpha", "k", "operations", "speed"),
    [
        # Leviathan et al., arXiv:2211.17192 v2, table 1
        (0.6, 2, 1.53, 1.96),
        (0.7, 3, 1.58, 2.53),
        (0.8, 2, 1.23, 2.44),
        (0.8, 5, 1.63, 3.69),
        (0.9, 2, 1.11, 2.71),
        (0.9, 10, 1.60, 6.86),
    ],
)
def test_table_1_of_leviathan(alpha: float, k: int, operations: float, speed: float) -> None:
    tokens = tokens_per_pass_flat(alpha, k)
    assert speed_up(tokens, k, 0) == pytest.approx(speed, abs=0.005 + 1e-12)
    assert operations_factor(tokens, k, 0) == pytest.approx(operations, abs=0.005 + 1e-12)


def test_theorem_3_8_with_a_drafter_that_costs() -> None:
    # inference-tradeoffs-explained: 8B with an MTP head, c = .09046 at alpha .7, k 3
    assert speed_up(tokens_per_pass_flat(0.7, 3), 3, 0.09046) == pytest.approx(1.992, abs=5e-4)
    assert operations_factor(tokens_per_pass_flat(0.7, 3), 3, 0.09906) == pytest.approx(1.696, abs=5e-4)


@pytest.mark.parametrize(("alpha", "k", "tokens"), [(0.7, 3, 2.533), (0.7, 4, 2.7731), (1, 5, 6), (0, 5, 1)])
def test_flat_acceptance(alpha: float, k: int, tokens: float) -> None:
    assert tokens_per_pass_flat(alpha, k) == pytest.approx(tokens, abs=5e-5)


@given(alpha=st.floats(0, 0.99), k=st.integers(1, 16))
def test_flat_acceptance_is_a_marginal_curve(alpha: float, k: int) -> None:
    assert tokens_per_pass(flat_marginal(alpha, k)) == pytest.approx(tokens_per_pass_flat(alpha, k), rel=1e-9)


def test_coverage_weighs_the_drafts_only() -> None:
    assert tokens_per_pass((0.5, 0.25), draft_rate=0.4) == pytest.approx(1 + 0.4 * 0.75)


def test_conditional_is_the_ratio_of_neighbours() -> None:
    assert conditional((0.8, 0.4, 0.4, 0.0)) == pytest.approx((0.8, 0.5, 1.0, 0.0))
    assert conditional((0.0, 0.0)) == (0.0, 0.0)


def test_draws_fall_on_either_side_of_each_limit() -> None:
    # a draft rate of 0.5 puts the limits of (0.8, 0.2) at 0.4 and 0.1
    draws = np.array([0.0, 0.0999, 0.1, 0.3999, 0.4, 0.4999, 0.5, 0.999])
    drafted, accepted = accepted_counts(draws, (0.8, 0.2), draft_rate=0.5)
    assert accepted.tolist() == [2, 2, 1, 1, 0, 0, 0, 0]
    assert drafted.tolist() == [True, True, True, True, True, True, False, False]


def test_evenly_spread_draws_give_the_marginal_curve_back() -> None:
    draws = (np.arange(10_000) + 0.5) / 10_000
    drafted, accepted = accepted_counts(draws, (0.75, 0.5, 0.125), draft_rate=0.8)
    assert drafted.sum() == 8_000
    assert [int((accepted >= i).sum()) for i in (1, 2, 3)] == [6_000, 4_000, 1_000]


def test_no_positions_no_drafts() -> None:
    drafted, accepted = accepted_counts(np.array([0.0, 0.5]), ())
    assert not drafted.any()
    assert accepted.tolist() == [0, 0]
