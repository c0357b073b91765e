from __future__ import annotations

from itertools import islice

import numpy as np
import plain_serving
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speclab.replications.chapter10.fleet.draws import curve_bursts, flat_bursts, plain, uniforms
from speclab.replications.chapter10.fleet.fleet import AssumedSpeculation


@given(seed=st.integers(0, 2**32 - 1), request_=st.integers(0, 100_000), skip=st.integers(0, 40))
def test_numbers_are_those_of_mulberry32(seed: int, request_: int, skip: int) -> None:
    stream = plain_serving.mulberry32((seed + request_ * 2654435761) & 0xFFFFFFFF)
    assert uniforms(seed, request_, 9, skip).tolist() == list(islice(stream, skip, skip + 9))


def _one_pass_at_a_time(
    speculation: AssumedSpeculation, request: int, tokens: int
) -> tuple[list[int], list[bool], list[int]]:
    stream = plain_serving.mulberry32((speculation.seed + request * 2654435761) & 0xFFFFFFFF)
    kept, drafted, accepted = [], [], []
    while sum(kept) < tokens:
        has_draft, agreed = plain_serving.drawn(speculation, stream)
        kept.append(min(agreed + 1, tokens - sum(kept)))
        drafted.append(has_draft)
        accepted.append(agreed)
    return kept, drafted, accepted


@given(
    request_=st.integers(0, 3000), tokens=st.integers(0, 200), k=st.integers(1, 9),
    alpha=st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1)),
)  # fmt: skip
def test_flat_bursts_are_those_drawn_pass_by_pass(request_: int, tokens: int, k: int, alpha: float) -> None:
    found = flat_bursts(0, request_, tokens, k, alpha)
    by_hand = _one_pass_at_a_time(AssumedSpeculation(drafter="mtp-head-8b", k=k, alpha=alpha), request_, tokens)
    assert (found.kept.tolist(), found.drafted.tolist(), found.accepted.tolist()) == by_hand


@given(request_=st.integers(0, 3000), tokens=st.integers(0, 200), draft_rate=st.sampled_from([0.0, 0.3, 1.0]))
def test_curve_bursts_are_those_drawn_pass_by_pass(request_: int, tokens: int, draft_rate: float) -> None:
    marginal = (0.8, 0.5, 0.1)
    found = curve_bursts(7, request_, tokens, marginal, draft_rate)
    by_hand = _one_pass_at_a_time(
        AssumedSpeculation(k=3, marginal=marginal, draft_rate=draft_rate, seed=7), request_, tokens
    )
    assert (found.kept.tolist(), found.drafted.tolist(), found.accepted.tolist()) == by_hand


def test_bursts_of_the_source_s_animation() -> None:
    assert flat_bursts(0, 0, 39, 3, 0.7).kept.tolist() == [4, 4, 4, 4, 1, 2, 2, 4, 2, 3, 1, 4, 2, 2]


def test_acceptance_by_position_comes_back() -> None:
    marginal = (0.745, 0.545, 0.404)
    found = curve_bursts(0, 1, 60_000, marginal, draft_rate=0.5)
    accepted = found.accepted[found.drafted]
    assert found.drafted.mean() == pytest.approx(0.5, abs=0.01)
    shares = [float((accepted >= position).mean()) for position in (1, 2, 3)]
    assert shares == pytest.approx(marginal, abs=0.015)


def test_without_speculation_a_pass_keeps_one_token() -> None:
    found = plain(3)
    assert (found.kept.tolist(), found.drafted.any(), found.accepted.sum()) == ([1, 1, 1], np.False_, 0)
