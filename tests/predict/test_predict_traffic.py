from __future__ import annotations

import numpy as np
import pytest

from speclab.predict.traffic import closed_loop


def test_answers_of_one_length_are_half_written_on_average() -> None:
    traffic = closed_loop(100, 200)
    assert traffic.context == 200  # the prompt, and half an answer
    assert traffic.prompts_per_token == 0.5


def test_long_answers_weigh_more() -> None:
    # E[L^2] / E[L] is the mean times 1 + cv^2: 200 x 2 here, of which half is written
    assert closed_loop(100, 200, cv=1).context == pytest.approx(300)


def test_cut_answers_as_drawn() -> None:
    variance = np.log1p(0.4**2)
    lengths = np.random.default_rng(1).lognormal(np.log(420) - variance / 2, np.sqrt(variance), 200_000)
    cut = np.minimum(lengths, 512)
    traffic = closed_loop(53, 420, 0.4, 512)
    assert traffic.context == pytest.approx(53 + (cut**2).mean() / cut.mean() / 2, rel=2e-3)
    assert traffic.prompts_per_token == pytest.approx(53 / cut.mean(), rel=2e-3)


def test_a_cut_below_every_answer_is_their_length() -> None:
    traffic = closed_loop(10, 10_000, 0.5, 8)
    assert traffic.context == pytest.approx(14)
    assert traffic.prompts_per_token == pytest.approx(10 / 8)
