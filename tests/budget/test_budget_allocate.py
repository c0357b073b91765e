"""Shares of the time against what a hand works out."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speclab.budget.allocate import Overhead, allowed, floor, half_width, seconds_for, share
from speclab.budget.components import Estimate
from speclab.budget.pilot import CellPilot
from speclab.lab import BASELINE

NONE = Estimate(0.0, 0.0)
FREE = Overhead(lost_s=0.0, least_s=0.0)


def cell(arm: str = "arm", *, texts: float = 0.0, steps: float = 0.0, machine: float = 0.0) -> CellPilot:
    """Return a cell that answers two prompts a second, of 40."""
    return CellPilot(
        arm=arm, workload="chat", concurrency=1, log_speed=0.0, texts=Estimate(texts, 0), steps=Estimate(steps, 0),
        machine=Estimate(machine, 0), answers_per_s=2.0, prompts=40, ramp_s=0.0, repeats=3, window_s=10.0,
        same_prompts=False, passed=True,
    )  # fmt: skip


def shared(arms: int, baseline: CellPilot, arm: CellPilot, variance: float, repeats: int = 3) -> dict[str, float]:
    names = [f"a{index}" for index in range(arms)]
    made = share(baseline, dict.fromkeys(names, arm), variance, repeats, dict.fromkeys([BASELINE, *names], FREE))
    assert made.seconds == pytest.approx(repeats * sum(made.window_s.values()))
    return dict(made.window_s)


@pytest.mark.parametrize("arms", [1, 4, 7])
def test_a_baseline_that_scatters_as_its_arms_do_gets_the_root_of_their_number(arms: int) -> None:
    windows = shared(arms, cell(steps=0.02), cell(steps=0.02), variance=1e-3)
    assert windows[BASELINE] / windows["a0"] == pytest.approx(math.sqrt(arms), rel=1e-3)
    # and the variance is used up: 0.02 / (3 W) of each side
    assert 0.02 / (3 * windows[BASELINE]) + 0.02 / (3 * windows["a0"]) == pytest.approx(1e-3, rel=1e-6)


def test_shares_go_by_the_root_of_the_variances() -> None:
    # one arm with four times the variance: Neyman gives it twice the baseline's time
    windows = shared(1, cell(steps=0.01), cell(steps=0.04), variance=1e-3)
    assert windows["a0"] / windows[BASELINE] == pytest.approx(2.0, rel=1e-3)
    assert 3 * sum(windows.values()) == pytest.approx((0.1 + 0.2) ** 2 / 1e-3, rel=1e-5)


def test_what_the_machine_takes_in_each_repeat_is_no_longer_there_for_the_windows() -> None:
    windows = shared(1, cell(steps=0.01), cell(steps=0.01, machine=1.5e-3), variance=1e-3)
    # 1.5e-3 / 3 repeats leaves half of the variance: twice the 40 s that it would have been
    assert 3 * sum(windows.values()) == pytest.approx(80, rel=1e-5)


def test_texts_fall_with_seconds_until_all_prompts_have_been_answered() -> None:
    one = cell(texts=0.04, steps=0.02)
    # 40 prompts at 2 a second are used up after 20 s, with 0.04/40 + 0.02/20 = 0.002 left
    assert seconds_for(one, 0.004, 3) == pytest.approx(10)
    assert seconds_for(one, 0.002, 3) == pytest.approx(20)
    assert seconds_for(one, 0.0015, 3) == pytest.approx(40)  # steps alone: 0.02 / 0.0005
    assert seconds_for(one, 0.001, 3) == np.inf
    assert floor(one, 3) == pytest.approx(0.001)


def test_between_the_two_there_is_a_stretch_where_all_prompts_is_just_enough() -> None:
    assert seconds_for(cell(texts=0.04), 0.0015, 3) == pytest.approx(0.04 / 2 / 0.0015)
    assert seconds_for(cell(texts=0.04), 0.001, 3) == pytest.approx(20)


def test_no_length_reaches_below_the_floor() -> None:
    made = share(cell(), {"a": cell(texts=0.04, machine=3e-3)}, 0.002, 3, {BASELINE: FREE, "a": FREE})
    assert made.seconds == np.inf
    assert made.window_s == {}


def test_a_window_is_never_shorter_than_the_least_and_what_cells_lose_is_on_the_bill() -> None:
    lost = {BASELINE: Overhead(5, 12), "a": Overhead(7, 12)}
    made = share(cell(steps=1e-6), {"a": cell(steps=1e-6)}, 1e-2, 4, lost)
    assert made.window_s == {BASELINE: 12, "a": 12}
    assert made.seconds == 4 * (12 + 12 + 5 + 7)


def test_a_half_width_and_its_variance_are_each_others_inverse() -> None:
    assert half_width(allowed(0.05, 3), 3) == pytest.approx(0.05)
    # 2 x 3 x 4 degrees of freedom: Student's factor is 2.064
    assert math.sqrt(allowed(0.05, 3)) == pytest.approx(0.05 / 2.0639, rel=1e-3)


@given(
    sides=st.tuples(*[st.floats(1e-5, 0.1)] * 2),
    texts=st.floats(0, 0.05),
    variance=st.floats(1e-3, 0.05),
    moved=st.floats(0.7, 1.4),
)
def test_no_other_split_reaches_the_variance_in_less_time(
    sides: tuple[float, float], texts: float, variance: float, moved: float
) -> None:
    baseline, arm = cell(steps=sides[0]), cell(texts=texts, steps=sides[1])
    if variance <= floor(baseline, 3) + floor(arm, 3) + 1e-5:
        return
    windows = shared(1, baseline, arm, variance)
    other = seconds_for(baseline, baseline.variance(3, windows[BASELINE] * moved).value, 3)
    left = variance - baseline.variance(3, windows[BASELINE] * moved).value
    assert other + seconds_for(arm, left, 3) >= 3 * sum(windows.values()) * (1 - 1e-3)


@given(texts=st.floats(0, 0.1), steps=st.floats(0, 0.1), machine=st.floats(0, 0.01), window_s=st.floats(1, 500))
def test_the_seconds_for_a_variance_are_those_that_give_it(
    texts: float, steps: float, machine: float, window_s: float
) -> None:
    one = replace(cell(steps=steps + 1e-4), texts=Estimate(texts, 0), machine=Estimate(machine, 0))
    assert seconds_for(one, one.variance(3, window_s).value, 3) == pytest.approx(3 * window_s, rel=1e-4)
