from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speclab.findings.pareto import on_front

# cost across, throughput up
COST = pd.Series([1.0, 2.0, 3.0, 3.0, 2.5], index=list("abcde"))
THROUGHPUT = pd.Series([10.0, 30.0, 40.0, 35.0, 30.0], index=list("abcde"))


@pytest.mark.parametrize(
    ("better_cost", "better_throughput", "front"),
    [
        ("lower", "higher", "abc"),  # d costs as much as c for less, e costs more than b for the same
        ("higher", "higher", "c"),
        ("lower", "lower", "a"),
        ("higher", "lower", "ade"),
    ],
)
def test_what_no_other_beats(better_cost: str, better_throughput: str, front: str) -> None:
    found = on_front(COST, THROUGHPUT, better_cost, better_throughput)  # type: ignore[arg-type]
    assert "".join(found.index[found]) == front


def test_equal_points_stand_on_the_front_together() -> None:
    twice = pd.Series([1.0, 1.0])
    assert on_front(twice, twice, "lower", "higher").tolist() == [True, True]


def test_a_point_without_a_value_neither_stands_there_nor_beats_one() -> None:
    x, y = pd.Series([1.0, np.nan, 2.0]), pd.Series([1.0, 9.0, np.nan])
    assert on_front(x, y, "higher", "higher").tolist() == [True, False, False]


NUMBERS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12)


@given(NUMBERS)
def test_every_point_off_the_front_is_beaten_by_one_on_it(pairs: list[tuple[int, int]]) -> None:
    table = pd.DataFrame(pairs, columns=["x", "y"])
    found = on_front(table["x"], table["y"], "lower", "higher")
    front = table[found]
    assert len(front) >= 1
    for row in table[~found].itertuples():
        better = front[(front["x"] <= row.x) & (front["y"] >= row.y)]
        assert len(better) >= 1
