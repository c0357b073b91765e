from __future__ import annotations

from pathlib import Path

import pytest

from speclab.engines import mock_script
from speclab.engines.mock_script import Script, seconds
from speclab.errors import UserError


@pytest.mark.parametrize(("rows", "step_s"), [(1, 0.010), (2, 0.015), (3, 0.020), (7, 0.040), (9, 0.050)])
def test_a_step_takes_the_time_on_the_line_between_two_sizes(rows: int, step_s: float) -> None:
    assert seconds(((1, 10), (3, 20), (7, 40)), rows) == pytest.approx(step_s)


def test_a_step_may_take_the_same_whatever_runs() -> None:
    assert [seconds(25, 1), seconds(25, 300), seconds(((1, 25),), 300)] == [0.025] * 3


@pytest.mark.parametrize("suffix", ["yml", "json"])
def test_a_script_is_a_file(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"script.{suffix}"
    script = Script(step_ms=((1, 20), (8, 40)), acceptance=({"rates": [0.7, 0.45]},), hang_after=0, fault_every=2)  # type: ignore[arg-type]
    file.write_text(
        script.model_dump_json()
        if suffix == "json"
        else "step_ms: [[1, 20], [8, 40]]\nacceptance: [{rates: [0.7, 0.45]}]\nhang_after: 0\nfault_every: 2\n"
    )
    assert mock_script.read(file) == script


def test_a_slip_in_a_script_is_named(tmp_path: Path) -> None:
    file = tmp_path / "script.yml"
    file.write_text("acceptance: [{rates: [0.3, 0.5]}]")
    with pytest.raises(UserError, match="must not rise"):
        mock_script.read(file)
    file.write_text("hang_afer: 1")
    with pytest.raises(UserError, match="did you mean 'hang_after'"):
        mock_script.read(file)


def test_which_requests_a_fault_hits() -> None:
    every_second = Script(fault_from=1, fault_every=2, fault_to=6)
    assert [number for number in range(10) if every_second.hits(number)] == [1, 3, 5]


def test_positions_are_those_of_the_longest_draft() -> None:
    assert Script().positions is None
    assert Script(k=4).positions == 4
    assert Script(acceptance=({"rates": [0.5]}, {"rates": [0.5, 0.4]})).positions == 2  # type: ignore[arg-type]


def test_every_fault_seen_can_be_scripted() -> None:
    """The rig of the table of faults, and its rows that are a server's doing."""
    rig = {"step_ms": 50, "prefill_ms": 30, "answer_tokens": [60, 140], "draws": "random"}
    rows = [
        {"acceptance": [{"rates": [0.5, 0.25, 0.1, 0.006, 0.002]}], "step_ms": 75},
        {"hang_after": 0, "fault_from": 1, "fault_every": 2},
        {"acceptance": [{"rates": [0.95, 0.9, 0.85]}], "answer_tokens": [6, 10]},
        {"steps_per_chunk": 2, "acceptance": [{"rates": [0.3, 0.1, 0.03, 0.01, 0.0]}], "step_ms": 75},
        {"chunk": "token", "acceptance": [{"rates": [0.3, 0.1, 0.03]}], "step_ms": 55},
        {"counter_factors": {"accepted_tokens": 1.2}},
        {"changes": [{"after_s": 8.5, "acceptance": [{"rates": [0.02, 0.0, 0.0]}]}]},
        {"max_running": 16, "gauges": False, "acceptance": [{"rates": [0.7, 0.5], "draft_rate": 0.0}]},
        {"status": 429, "retry_after_s": 1, "reason": "quota exceeded for key {key}"},
        {"usage": "final", "dialect": "llama.cpp", "chunk": "token"},
        {"preempt_every": 50},
    ]
    scripts = [Script.model_validate(rig | row) for row in rows]
    assert len({script.model_dump_json() for script in scripts}) == len(rows)
