from __future__ import annotations

import pytest

from speclab.probe.points import CONTEXTS, MOST_TOKENS, SCOUTS, Point, beyond, core
from speclab.roofline.forward_pass import decode, verify, work
from speclab.roofline.transformers import transformer


@pytest.mark.parametrize("k", [0, 3])
def test_a_points_sums_are_those_of_the_cost_model(k: int) -> None:
    shape, rows, context = transformer("llama-3.2-1b"), 16, 256
    point = Point("step", rows, k + 1, context)
    asked = work(shape, point.tokens, point.attended, point.kv_tokens)
    assert asked == verify(shape, rows, rows * context, k)
    if k == 0:
        assert asked == decode(shape, rows, rows * context)


def test_a_part_of_a_step_reads_no_cache() -> None:
    head = Point("head", 64, 1, 0)
    assert (head.tokens, head.kv_tokens, head.attended) == (64, 0, 0)


def test_no_point_is_timed_twice_and_none_is_above_the_limit() -> None:
    every = core(sampling=True) + beyond(sampling=True)
    assert len(set(every)) == len(every)
    assert max(point.tokens for point in every) == MOST_TOKENS
    # 11 + 10 + 9 + 8 batches of 1, 2, 4 and 8 positions up to 1,024 tokens, at three contexts
    assert sum(point.part == "step" for point in every) == 38 * len(CONTEXTS)


def test_the_scouts_come_first_and_the_core_tells_the_costs_apart() -> None:
    points = core()
    assert points[:2] == SCOUTS
    steps = [point for point in points if point.part == "step"]
    assert {point.part for point in points} == {"step", "head"}
    for axis in ("rows", "positions", "context"):
        assert len({getattr(point, axis) for point in steps}) > 1, axis
    assert {point.part for point in core(sampling=True)} == {"step", "head", "sampling"}


def test_beyond_the_core_decoding_and_verifying_three_drafts_come_first() -> None:
    steps = [point for point in beyond() if point.part == "step"]
    first = [point for point in steps if point.positions in (1, 4)]
    assert steps[: len(first)] == first
    assert steps[0] == Point("step", 2, 1, 256)
