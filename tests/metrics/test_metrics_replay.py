from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from speclab.metrics import summary
from speclab.metrics.replay import COLUMNS, by_k, expected_steps, replays_by_prompt, runs
from speclab.metrics.window import cut


def steps_of(step_tokens: list[int], longest: int, k: int, bonus: float) -> float:
    """Return the steps of one answer with a shorter draft."""
    _, full, rest = runs(np.zeros(len(step_tokens), dtype=np.int64), np.array(step_tokens), longest)
    return float(expected_steps(full, rest, longest, k, bonus).sum())


def test_runs_end_at_the_first_step_that_is_not_full_and_at_an_answers_end() -> None:
    row, step_tokens = np.array([0, 0, 0, 0, 1, 1]), np.array([4, 4, 2, 4, 1, 3])
    last, full, rest = runs(row, step_tokens, 3)
    assert last.tolist() == [2, 3, 4, 5]
    assert full.tolist() == [2, 1, 0, 0]
    assert rest.tolist() == [2, 0, 1, 3]


@pytest.mark.parametrize(
    ("step_tokens", "longest", "k", "bonus", "steps"),
    [
        ([1, 1, 1], 8, 2, 0.5, 3.0),  # nothing was accepted: nothing changes
        ([7], 8, 2, 0.5, 3.0),  # six right and one wrong: 3 + 3, and the wrong one ends a step of its own
        ([6], 8, 2, 0.5, 2.0),  # five right and one wrong, which is the second step's bonus
        ([9, 1], 8, 2, 0.0, 4.0),  # 3 + 3 + 3 fits without asking about the bonus, then 1
        ([9, 1], 8, 3, 0.0, 4.0),  # 4 + 4 + 1, and the next step begins anew
        ([9, 1], 8, 3, 1.0, 3.0),  # 4 + 4 + (1 and the 1 behind it)
        ([9, 1], 8, 3, 0.25, 3.75),
        ([9, 9], 8, 5, 1.0, 3.0),  # 18 tokens in steps of 6; the answer ends there
        ([9, 9], 8, 5, 0.0, 4.0),  # 6 + 3 twice
        ([4, 4, 2], 3, 3, 0.3, 3.0),  # the arm's own k: the steps that were taken
    ],
)
def test_steps_are_counted_by_hand(step_tokens: list[int], longest: int, k: int, bonus: float, steps: float) -> None:
    assert steps_of(step_tokens, longest, k, bonus) == pytest.approx(steps)


def test_where_each_draft_token_is_right_by_chance_the_replay_is_the_law() -> None:
    """Tokens right with probability p: a step of k drafts gives (1 - p^(k+1)) / (1 - p) on average."""
    p, longest, steps = 0.7, 8, 200_000
    step_tokens = np.minimum(np.random.default_rng(1).geometric(1 - p, steps), longest + 1)
    _, full, rest = runs(np.arange(steps) // 100, step_tokens, longest)
    for k in (1, 2, 3, 5):
        found = step_tokens.sum() / expected_steps(full, rest, longest, k, p).sum()
        law = (1 - p ** (k + 1)) / (1 - p)
        # 100 steps an answer: its last short step is cut off, which costs about half a step in a hundred and more
        assert found == pytest.approx(law, rel=0.01)


def test_easy_places_count_more_than_cutting_lets_them(request_row, make_cell) -> None:
    rows = [
        request_row(0.0, [(0.5, 1), (0.6, 9), (0.7, 1), (0.8, 1)]),
        request_row(1.0, [(1.5, 1), (1.6, 3)], prompt_id="chat/01"),
    ]
    table = replays_by_prompt(cut(make_cell(rows, k=8)))
    assert table.columns.tolist() == [
        *COLUMNS, *(f"steps_{k}" for k in range(1, 9)), *(f"cut_tokens_{k}" for k in range(1, 9))
    ]  # fmt: skip
    table = by_k(table)
    at_two = table[table["k"] == 2].set_index("prompt_id")
    # 9 tokens are three steps of 3, then two of 1: cutting has 3 + 1 + 1 tokens in the three steps that were taken
    assert at_two.loc["chat/00", ["tokens", "steps", "cut_tokens"]].tolist() == [11, 5, 5]
    assert at_two.loc["chat/01", ["tokens", "steps", "cut_tokens"]].tolist() == [3, 1, 3]
    at_eight = table[table["k"] == 8].set_index("prompt_id")
    assert at_eight["steps"].tolist() == [3, 1]
    assert at_eight["cut_tokens"].tolist() == at_eight["tokens"].tolist()


def test_an_arm_without_drafts_and_a_cell_without_answers_have_no_rows(request_row, make_cell) -> None:
    row = request_row(0.0, [(0.5, 1), (0.6, 1)])
    assert replays_by_prompt(cut(make_cell([row]))).empty
    assert replays_by_prompt(cut(make_cell([], k=3))).empty
    cut_off = request_row(0.0, [(0.5, 1), (0.6, 2)], ended=False)
    assert replays_by_prompt(cut(make_cell([cut_off], k=3))).empty


def test_replays_carry_the_cells_keys(request_row, make_cell) -> None:
    replays = summary.of(make_cell([request_row(0.0, [(0.5, 1), (0.6, 2)])], k=3)).replays
    assert replays.columns.tolist()[:7] == ["arm", "workload", "concurrency", "repeat", "source", *COLUMNS]
    assert by_k(replays)["k"].tolist() == [1, 2, 3]


def test_arms_of_different_k_stand_in_one_table() -> None:
    both = pd.DataFrame(
        {
            **{"arm": ["k1", "k2"], "prompt_id": "a", "tokens": 4},
            **{"steps_1": [3.0, 2.5], "steps_2": [None, 2], "cut_tokens_1": [4, 3], "cut_tokens_2": [None, 4]},
        }
    )
    table = by_k(both)
    assert table[["arm", "k", "steps", "cut_tokens"]].to_numpy().tolist() == [
        ["k1", 1, 3.0, 4.0], ["k2", 1, 2.5, 3.0], ["k2", 2, 2.0, 4.0],
    ]  # fmt: skip
    assert by_k(pd.DataFrame(columns=["arm", *COLUMNS])).empty
