from __future__ import annotations

import numpy as np
import pytest

from speclab.replications.chapter10.fleet.workload import FleetWorkload, Length, draw
from speclab.replications.chapter10.presets import REFERENCE_RATE, WORKLOADS


@pytest.mark.parametrize(
    ("name", "session_s", "requests"),
    # from the source; offline and long-rag take 400 requests of one turn
    [("chat", 83.6985, 1947), ("coding-agent", 79.2, 1600), ("voice", 27.0, 1200), ("long-rag", None, 400)],
)
def test_sessions_of_the_page_s_workloads(name: str, session_s: float | None, requests: int) -> None:
    workload = WORKLOADS[name]
    if session_s is not None:
        assert workload.session_s == pytest.approx(session_s)
    assert len(draw(workload, REFERENCE_RATE[name], seed=1)) == requests


def test_a_turn_s_prompt_holds_the_session_so_far() -> None:
    asked = draw(WORKLOADS["chat"], 2.0, seed=1, sessions=50)
    prompt, output = asked.prompt.reshape(50, 3), asked.output.reshape(50, 3)
    new_input = prompt - np.hstack([np.full((50, 1), 512), prompt[:, :2] + output[:, :2]])
    assert new_input.min() >= 1
    assert new_input.max() <= 1024
    assert np.isnan(asked.arrival_s.reshape(50, 3)).tolist() == [[False, True, True]] * 50
    assert (asked.think_s.reshape(50, 3) > 0).tolist() == [[False, True, True]] * 50


def test_lengths_do_not_depend_on_the_rate_and_a_longer_run_begins_as_a_shorter_one() -> None:
    few, many = draw(WORKLOADS["voice"], 1.0, 1, sessions=20), draw(WORKLOADS["voice"], 4.0, 1, sessions=30)
    np.testing.assert_array_equal(few.output, many.output[: len(few)])
    np.testing.assert_allclose(few.arrival_s, 4 * many.arrival_s[: len(few)])


def test_lengths_have_the_mean_and_spread_that_were_asked_for() -> None:
    asked = draw(
        FleetWorkload(name="x", new_input=Length(mean=300, cv=0.5), output=Length(mean=100, cv=0)), 1, 1, 20_000
    )
    assert asked.prompt.mean() == pytest.approx(300, rel=0.02)
    assert asked.prompt.std() == pytest.approx(150, rel=0.03)
    assert set(asked.output.tolist()) == {100}
    assert np.diff(asked.arrival_s).mean() == pytest.approx(1, rel=0.03)
