from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speclab.metrics.text import compare, first_difference, summarise


def answers(*rows: dict[str, Any]) -> pd.DataFrame:
    whole = {"finish_reason": "length", "error": None}
    return pd.DataFrame([{**whole, **row} for row in rows])


@pytest.mark.parametrize(
    ("one", "other", "index"),
    [("abc", "abc", None), ("abc", "abd", 2), ("abc", "ab", 2), ("", "a", 0), ("", "", None), ((1, 2), (1, 3), 1)],
)
def test_where_two_texts_part(one: Any, other: Any, index: int | None) -> None:
    assert first_difference(one, other) == index


@given(st.text(), st.text(), st.text())
def test_it_is_the_length_of_the_common_beginning_from_either_side(same: str, one: str, other: str) -> None:
    index = first_difference(same + one, same + other)
    assert index == first_difference(same + other, same + one)
    if index is None:
        assert one == other
    else:
        assert index >= len(same)
        assert (same + one)[:index] == (same + other)[:index]


def test_answers_are_compared_prompt_by_prompt_with_the_baselines_gap_at_the_first_difference() -> None:
    baseline = answers(
        {"prompt_id": "a", "text": "one two", "token_ids": (1, 2), "gaps": (3.0, 0.5)},
        {"prompt_id": "b", "text": "same", "token_ids": (3,), "gaps": (2.0,)},
        {"prompt_id": "c", "text": "only here", "token_ids": (4,), "gaps": (1.0,)},
    )
    arm = answers(
        {"prompt_id": "b", "text": "same", "token_ids": (3,)},
        {"prompt_id": "a", "text": "one ten", "token_ids": (1, 9)},
    )
    compared = compare(baseline, arm)
    assert compared["prompt_id"].tolist() == ["a", "b"]
    assert compared["equal"].tolist() == [False, True]
    assert compared.loc[0, ["first_character", "first_token", "gap"]].tolist() == [5, 1, 0.5]
    assert compared.loc[1, ["first_character", "first_token", "gap"]].isna().all()
    # Wilson's interval of 1 in 2 at 95%: 0.0945 to 0.9055 (scipy.stats.binomtest)
    assert summarise(compared) == {
        "prompts": 2, "equal": 1, "share": 0.5, "low": pytest.approx(0.0945, abs=1e-4),
        "high": pytest.approx(0.9055, abs=1e-4), "first_token": 1.0, "gap": 0.5, "largest_gap": 0.5,
    }  # fmt: skip


def test_a_recorded_cells_table_without_tokens_is_compared_by_character() -> None:
    baseline = answers(
        {"prompt_id": "a", "text": "one"},
        {"prompt_id": "a", "text": "asked again"},
        {"prompt_id": "b", "text": "cut o", "finish_reason": None},
        {"prompt_id": "c", "text": None, "error": "HTTP 500"},
    )
    arm = answers(
        {"prompt_id": "a", "text": "oner"}, {"prompt_id": "b", "text": "cut"}, {"prompt_id": "c", "text": "x"}
    )
    compared = compare(baseline, arm)
    assert compared["prompt_id"].tolist() == ["a"]
    assert compared.loc[0, "first_character"] == 3
    assert compared[["first_token", "gap"]].isna().all(axis=None)


def test_tokens_may_differ_where_the_characters_do_not() -> None:
    compared = compare(
        answers({"prompt_id": "a", "text": "ab", "token_ids": (1, 2)}),
        answers({"prompt_id": "a", "text": "ab", "token_ids": (3,)}),
    )
    assert compared["equal"].tolist() == [False]


def test_nothing_in_common_has_no_share() -> None:
    nothing = summarise(compare(answers({"prompt_id": "a", "text": "x"}), answers({"prompt_id": "b", "text": "x"})))
    assert (nothing["prompts"], nothing["equal"]) == (0, 0)
    assert {nothing[name] for name in ("share", "low", "high", "first_token", "gap", "largest_gap")} == {None}
