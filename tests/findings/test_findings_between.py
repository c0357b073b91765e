"""An arm's answers beside the baseline's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from speclab.findings.between import FEWEST_PROMPTS, checks, judged

ARMS = ("baseline", "ngram-k8")


@pytest.fixture
def pair(cell_row):
    """Two cells at one place, and their answers: (tokens of each prompt, openings) of both arms."""

    def build(tokens, openings=None, **given):
        cells = pd.DataFrame([cell_row(arm, 4, one_token_answers=0, ended_requests=50) for arm in ARMS])
        parts = [
            pd.DataFrame(
                {"prompt_id": [f"p{n}" for n in range(len(of_arm))], "answers": 1, "tokens": of_arm,
                 "opening": openings[place] if openings else None, "arm": arm}
            )
            for place, (arm, of_arm) in enumerate(zip(ARMS, tokens, strict=True))
        ]  # fmt: skip
        answers = pd.concat(parts).assign(workload="chat", concurrency=4, repeat=0, source=cells["source"].iloc[0])
        return cells, answers

    return build


def verdict(table, name):
    return table.set_index("check").loc[name, "verdict"]


@pytest.mark.parametrize(
    ("factor", "expected"), [(1.0, "PASS"), (1.09, "PASS"), (0.85, "WARN"), (0.6, "FAIL"), (1.6, "FAIL")]
)
def test_f3_answers_are_as_long_as_the_baselines(pair, factor, expected):
    lengths = np.arange(60.0, 160.0, 10.0)
    cells, answers = pair((lengths, lengths * factor))
    assert verdict(checks(cells, answers), "tokens per prompt") == expected
    assert judged(cells, answers)["failed_checks"].notna().tolist() == [False, expected == "FAIL"], "the arm's alone"


def test_lengths_that_scatter_are_no_fault_and_two_prompts_tell_nothing(pair):
    lengths = np.array([100.0, 100.0, 100.0, 100.0])
    assert verdict(checks(*pair((lengths, np.array([20.0, 180.0, 30.0, 90.0])))), "tokens per prompt") == "PASS"
    few = lengths[: FEWEST_PROMPTS - 1]
    assert verdict(checks(*pair((few, few * 0.1))), "tokens per prompt") == "WARN"


@pytest.mark.parametrize(("empty", "expected"), [(0, "PASS"), (2, "WARN"), (20, "FAIL")])
def test_f3_empty_answers_beside_the_baselines(pair, empty, expected):
    cells, answers = pair(([50.0] * 4, [50.0] * 4))
    cells.loc[cells["arm"] == "ngram-k8", "one_token_answers"] = empty
    table = checks(cells, answers)
    assert verdict(table, "empty answers") == expected
    # a model that answers nothing to some prompts does so in both
    assert verdict(checks(cells.assign(one_token_answers=empty), answers), "empty answers") == "PASS"


@pytest.mark.parametrize(
    ("equal", "of", "expected"), [(10, 10, "PASS"), (8, 10, "WARN"), (1, 10, "FAIL"), (0, 4, "FAIL"), (0, 2, "WARN")]
)
def test_f3_texts_begin_as_the_baselines(pair, equal, of, expected):
    theirs = [f"t{n}" for n in range(of)]
    ours = theirs[:equal] + ["other"] * (of - equal)
    cells, answers = pair(([50.0] * of, [50.0] * of), (theirs, ours))
    assert verdict(checks(cells, answers), "same text") == expected


def test_where_no_text_is_recorded_it_is_not_asked_for(pair):
    assert "same text" not in set(checks(*pair(([50.0] * 4, [50.0] * 4)))["check"])


def test_an_arm_without_a_baseline_or_that_did_not_run_has_nothing_to_be_held_against(pair):
    cells, answers = pair(([50.0], [50.0]))
    assert checks(cells[cells["arm"] != "baseline"], answers).empty
    assert checks(cells.assign(status="failed"), answers).empty
    assert judged(cells, None)["failed_checks"].isna().all()


def test_a_check_that_failed_before_stays_named(pair):
    cells, answers = pair(([100.0] * 5, [10.0] * 5))
    cells["failed_checks"] = ["stationarity", "usage"]
    assert judged(cells, answers)["failed_checks"].tolist() == ["stationarity", "usage; tokens per prompt"]
