"""The line of a sweep, and its estimate."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import pytest
from rich.console import Console

from speclab.cli.progress import SERVER_START_S, Bar, TimeLeft, seconds_left
from speclab.engines import EngineOptions
from speclab.engines.base import Reading
from speclab.run.plan import ArmPlan, plan_arm

LENGTH_S = 10.0


def plan(out: Path, engine: str = "vllm") -> ArmPlan:
    phases = {"length_s": LENGTH_S, "drop_first_s": 1.0, "drop_last_s": 1.0}
    return plan_arm("lab09", "baseline", engine=engine, workloads=["chat"], concurrencies=[1, 4], repeats=2, out=out,
                    phases=phases, options=EngineOptions(base_url=None, device="here"))  # type: ignore[arg-type] # fmt: skip


def test_g9_the_estimate_only_falls_while_a_server_starts_and_cells_run(tmp_path: Path) -> None:
    one = plan(tmp_path)
    estimate = TimeLeft([one])
    told = [estimate.left_s()]
    assert told == [seconds_left([one])] == [4 * LENGTH_S + 2 * SERVER_START_S]
    told += [estimate.left_s(of_start_s=second) for second in range(1, 45)]
    estimate.started(SERVER_START_S)
    for _ in range(2):
        told += [estimate.left_s(of_cell_s=second) for second in range(10)]
        estimate.ended(LENGTH_S)
        told.append(estimate.left_s())
    steps = [after - before for before, after in itertools.pairwise(told)]
    assert max(steps) <= 0, "it never grows"
    assert min(steps) >= -1, "nor jumps: each step took a second"
    assert told[-1] == 2 * LENGTH_S + SERVER_START_S


def test_g9_a_start_beyond_the_estimate_stands_still_and_the_next_is_taken_to_be_as_long(tmp_path: Path) -> None:
    estimate = TimeLeft([plan(tmp_path)])
    rest = 4 * LENGTH_S + SERVER_START_S
    assert estimate.left_s(of_start_s=70.0) == estimate.left_s(of_start_s=80.0) == rest
    estimate.started(80.0)
    assert estimate.left_s() == 4 * LENGTH_S + 80.0


def test_a_cell_that_failed_at_once_takes_its_whole_length_off_the_estimate(tmp_path: Path) -> None:
    estimate = TimeLeft([plan(tmp_path)])
    estimate.started(1.0)
    for left in (3, 2, 1, 0):
        estimate.ended(LENGTH_S)
        assert estimate.left_s() == left * LENGTH_S + 1.0
    estimate.started(1.0)
    assert estimate.left_s() == 0


def bar(out: Path, *, terminal: bool, engine: str = "vllm") -> tuple[Bar, io.StringIO, ArmPlan]:
    shown = io.StringIO()
    one = plan(out, engine)
    return Bar([one], Console(file=shown, force_terminal=terminal, width=80)), shown, one


def test_g9_a_log_is_told_every_ten_seconds_how_a_start_goes_on(tmp_path: Path) -> None:
    line, shown, one = bar(tmp_path, terminal=False)
    with line:
        for second in range(41):
            line.starting("baseline", float(second), f"[bold]Loading {second} of 40")
        line.starting("baseline", 41.0, None)
        line.advance(one.cells[0], LENGTH_S, None)
    lines = shown.getvalue().splitlines()
    assert [text for text in lines if text.startswith("starting")] == [
        f"starting the server of baseline, {second} s so far; its last line: [bold]Loading {second} of 40"
        for second in (10, 20, 30, 40)
    ]
    assert "[1/4] baseline chat 1 in flight, 0:01:11 left" in lines  # three cells, and a start as long as the first


@pytest.mark.parametrize("last_line", ["", "Loading weights: 50%"])
def test_g9_a_terminal_is_told_how_a_start_goes_on(tmp_path: Path, last_line: str) -> None:
    line, shown, _ = bar(tmp_path, terminal=True)
    with line:
        line.starting("baseline", 40.0, last_line)
        line._progress.refresh()
    text = shown.getvalue()
    assert "starting the server of baseline, 40 s so far" in text
    assert ("its last line: Loading weights: 50% " in text) == bool(last_line)
    assert "0:01:30 left" in text


def test_the_simulator_has_no_estimate(tmp_path: Path) -> None:
    line, shown, one = bar(tmp_path, terminal=False, engine="simulated")
    with line:
        line.advance(one.cells[0], 3.0, Reading(at_s=3.0))
        line.advance(one.cells[0], LENGTH_S, None)
    assert shown.getvalue().splitlines()[0] == "[1/4] baseline chat 1 in flight"
    assert "left" not in shown.getvalue()
