"""A plan as a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from known_pilots import made_cell, pilot_of

from speclab.budget import run_plan
from speclab.budget.spend import Spending, everything
from speclab.errors import UserError
from speclab.lab import BASELINE, Lab
from speclab.results import Results


@pytest.fixture
def lab(small_results: Results) -> Lab:
    return small_results.lab


def spent() -> Spending:
    return everything(pilot_of(made_cell("eagle3-k3"), made_cell("eagle3-k3", concurrency=8, steps=0.1)), 0.05)


def test_what_is_written_is_read(lab: Lab, tmp_path: Path) -> None:
    plan = run_plan.of(spent(), lab)
    run_plan.write(plan, tmp_path / "plan.yml")
    assert run_plan.read(tmp_path / "plan.yml", lab) == plan
    phases = plan.phases(BASELINE)["chat", 8]
    window_s = spent().shares["chat", 8].window_s[BASELINE]
    assert phases.window_s == (4, 4 + window_s)  # the ramp first, and the lab's second at the end
    assert phases.length_s == 4 + window_s + 1
    assert plan.phases("medusa") == {}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("lab: small", "lab: other", "lab: found 'other'; this is no plan of small"),
        ("repeats: ", "repeat: ", "unknown key 'repeat'"),
        (
            "arm: baseline, workload: chat, concurrency: 8",
            "arm: baseline, workload: chat, concurrency: 9",
            "without the",
        ),
        ("concurrency: 8", "concurrency: 64", "cells: found baseline chat 64; baseline of small does not run there"),
        ("concurrency: 8", "concurrency: 1", "twice"),
        ("arm: eagle3-k3", "arm: medusa", "cells: unknown arm 'medusa'; the arms of small: baseline, eagle3-k3"),
        ("drop_first_s: 4", "drop_first_s: 4000", "length_s must be longer than drop_first_s"),
        ("half_width: 0.05", "half_width: 2", "half_width: found 2"),
    ],
)
def test_a_slip_in_the_file_is_named(lab: Lab, tmp_path: Path, old: str, new: str, problem: str) -> None:
    file = tmp_path / "plan.yml"
    run_plan.write(run_plan.of(spent(), lab), file)
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    with pytest.raises(UserError) as error:
        run_plan.read(file, lab)
    assert problem in str(error.value)
    assert str(file) in str(error.value)


def test_a_spending_on_nothing_is_no_plan(lab: Lab) -> None:
    of = spent()
    with pytest.raises(UserError, match="the plan holds no cell"):
        run_plan.of(Spending(of.pilot, 0.05, 3), lab)
