"""A pilot from a lab's tables, and what cannot be one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from speclab.budget.estimate import pilot
from speclab.budget.pilot import Pilot
from speclab.errors import UserError
from speclab.lab import BASELINE
from speclab.results import Results


def made(results: Results, **changed: Any) -> Pilot:
    tables = replace(results.tables, **changed)
    return pilot(tables.cells, tables.blocks, tables.answers, {"chat": 40}, results.lab.phases, start_s=30)


def test_a_pilot_has_each_cell_with_its_speed_and_its_answers(small_results: Results) -> None:
    of = made(small_results)
    assert [(cell.arm, cell.concurrency) for cell in of.cells] == [
        (BASELINE, 1), (BASELINE, 8), ("eagle3-k3", 1), ("eagle3-k3", 8)
    ]  # fmt: skip
    table = small_results.tables
    for cell in of.cells:
        here = table.cells[(table.cells["arm"] == cell.arm) & (table.cells["concurrency"] == cell.concurrency)]
        assert cell.log_speed == pytest.approx(np.log(here["system_throughput"].astype(float)).mean())
        assert cell.repeats == 3
        assert cell.window_s == pytest.approx(6)
        # Little: each slot writes one answer after the other, of about 40 tokens
        assert cell.answers_per_s == pytest.approx(np.exp(cell.log_speed) / 40, rel=0.25)
    assert of.source == "simulated (h100-sxm)"


def test_a_baseline_has_no_variance_of_texts_and_a_drafter_by_chance_nearly_none(small_results: Results) -> None:
    cells = {cell.arm: cell for cell in made(small_results).cells if cell.concurrency == 8}
    assert cells[BASELINE].texts.value == pytest.approx(0, abs=1e-12)
    assert cells["eagle3-k3"].texts.value < 0.01


def test_repeats_of_the_same_prompts_are_known_by_their_prompts(small_results: Results) -> None:
    answers = small_results.tables.answers
    apart = answers.assign(prompt_id=answers["prompt_id"] + "/" + answers["repeat"].astype(str))
    assert not any(cell.same_prompts for cell in made(small_results, answers=apart).cells)
    alike = answers.assign(prompt_id="chat/1")
    assert all(cell.same_prompts for cell in made(small_results, answers=alike).cells)


def test_cells_that_failed_a_check_stand_in_where_there_are_no_others(small_results: Results) -> None:
    cells = small_results.tables.cells
    one = cells.assign(failed_checks=cells["failed_checks"].where(cells["repeat"] != 0, "stationarity"))
    assert all(cell.passed and cell.repeats == 2 for cell in made(small_results, cells=one).cells)
    every = cells.assign(failed_checks="stationarity")
    assert all(not cell.passed and cell.repeats == 3 for cell in made(small_results, cells=every).cells)


def test_a_place_without_a_baseline_is_named_and_left_out(small_results: Results) -> None:
    cells = small_results.tables.cells
    without = cells[(cells["arm"] != BASELINE) | (cells["concurrency"] == 1)]
    of = made(small_results, cells=without)
    assert of.alone == (("eagle3-k3", "chat", 8),)
    assert {cell.concurrency for cell in of.cells} == {1}


@pytest.mark.parametrize(
    ("kept", "problem"),
    [
        (lambda cells: cells["repeat"] == 0, "every cell has one repeat"),
        (lambda cells: cells["arm"] != BASELINE, "the baseline has no finished cell"),
        (lambda cells: cells["arm"] == BASELINE, "only the baseline has finished cells"),
        (lambda cells: (cells["arm"] == BASELINE) == (cells["concurrency"] == 1), "no arm was measured where the base"),
        (lambda cells: cells["repeat"] > 5, "no cell of this lab has finished"),
    ],
)
def test_what_cannot_be_a_pilot_says_why(small_results: Results, kept: Any, problem: str) -> None:
    cells: pd.DataFrame = small_results.tables.cells
    with pytest.raises(UserError, match=problem):
        made(small_results, cells=cells[kept(cells)])
