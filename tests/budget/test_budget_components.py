"""Components of a variance against hand-made data in which they are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from speclab.budget.components import machine, shrunk, steps_in_window, texts


def answers(rows: list[tuple[str, int, int]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["prompt_id", "steps", "tokens"]).assign(answers=1)


def test_texts_scatter_by_how_far_each_pulls_the_ratio() -> None:
    # 100 tokens each in 40, 50 and 60 steps: the ratio is 2, the pulls are 0.2, 0, -0.2, their variance 0.04
    estimate = texts(answers([("a", 40, 100), ("b", 50, 100), ("c", 60, 100)]))
    assert estimate is not None
    assert estimate.value == pytest.approx(0.04)
    assert estimate.doubt == pytest.approx(0.04)  # sqrt(2 / 2)


def test_a_text_that_is_answered_again_in_the_same_steps_is_one_text() -> None:
    once = [("a", 40, 100), ("b", 50, 100), ("c", 60, 100)]
    estimate = texts(answers(once * 5))
    assert estimate is not None
    assert estimate.value == pytest.approx(0.04)


def test_what_chance_does_to_one_prompt_is_no_variance_of_texts() -> None:
    rng = np.random.default_rng(4)
    steps = rng.integers(35, 65, size=400)
    rows = [(f"p{index % 20}", int(step), 100) for index, step in enumerate(steps)]
    estimate = texts(answers(rows))
    assert estimate is not None
    among_all = float(np.var(1 - steps / steps.mean()))
    assert estimate.value < 0.1 * among_all


def test_two_prompts_do_not_say_how_texts_scatter() -> None:
    assert texts(answers([("a", 40, 100), ("b", 60, 100)])) is None
    assert texts(pd.DataFrame()) is None


def test_steps_in_a_window_by_hand() -> None:
    # two repeats of two blocks of 5 s: deviations of 0.1 to both sides, so 4 x 0.01 over 2 degrees of freedom
    rates = np.array([[90.0, 110.0], [110.0, 90.0]])
    variance, freedom = steps_in_window(rates, 10.0, same_prompts=False)
    assert (variance, freedom) == (pytest.approx(0.02 * 10 / 2), 2)


def test_a_pattern_that_every_repeat_shows_is_the_prompts_and_no_noise() -> None:
    rates = np.array([[90.0, 110.0], [90.0, 110.0]])
    assert steps_in_window(rates, 10.0, same_prompts=False)[0] > 0.05
    variance, freedom = steps_in_window(rates, 10.0, same_prompts=True)
    assert variance == pytest.approx(0.0, abs=1e-15)
    assert freedom == 1


def test_places_that_agree_are_drawn_onto_their_line_and_places_that_differ_keep_their_own() -> None:
    rng = np.random.default_rng(1)
    at, freedom = [1, 2, 4, 8, 16] * 4, [8] * 20
    noisy = 0.01 * np.array(at) * rng.chisquare(8, 20) / 8
    drawn = np.array([estimate.value for estimate in shrunk(noisy, freedom, at)])
    errors = [np.std(np.log(column / (0.01 * np.array(at)))) for column in (noisy, drawn)]
    assert errors[1] < errors[0] / 2
    apart = np.array([1e-4, 1e-2, 1e-4, 1e-2, 1e-4] * 4)
    kept = np.array([estimate.value for estimate in shrunk(apart, [200] * 20, at)])
    assert np.allclose(np.log(kept), np.log(apart), atol=0.1)


def test_one_place_stands_for_itself() -> None:
    (estimate,) = shrunk([0.03], [8], [4])
    assert (estimate.value, estimate.doubt) == (pytest.approx(0.03), pytest.approx(0.03 * 0.5))


def test_the_machine_is_what_is_left_between_repeats_and_never_below_nothing() -> None:
    estimate = machine([3e-4, 5e-4], [1e-4, 1e-4], [3, 3])
    assert estimate.value == pytest.approx(3e-4)
    assert estimate.doubt == pytest.approx(4e-4 / np.sqrt(2))  # four degrees of freedom of a variance of 4e-4
    assert machine([1e-4], [4e-4], [3]).value == 0.0
    assert machine([1e-4], [4e-4], [3]).doubt > 0


def test_a_place_whose_steps_scatter_widely_says_little_of_the_machine() -> None:
    assert machine([2e-4, 0.5], [1e-4, 0.1], [3, 3]).value == pytest.approx(1e-4, rel=0.05)


def test_estimates_are_right_on_average() -> None:
    rng = np.random.default_rng(7)
    values = []
    for _ in range(300):
        within = 2e-4
        repeats = rng.normal(scale=np.sqrt(within + 6e-4), size=(6, 3))
        values.append(machine(repeats.var(axis=1, ddof=1), [within] * 6, [3] * 6).value)
    assert np.mean(values) == pytest.approx(6e-4, rel=0.06)
