from __future__ import annotations

from dataclasses import replace

import pytest

from speclab.errors import UserError
from speclab.replications.ask import NamedQuery, answer, survey

BASE = NamedQuery(concurrency=None)
CURVES = {"falling": (0.6, 0.4, 0.2)}


def test_a_row_for_each_question_and_concurrency_with_the_answer_to_it() -> None:
    found = survey(BASE, ("h100", "a100"), CURVES, (500.0, 8000.0), (1, 3))
    assert found.groupby(["device", "acceptance", "context", "k"]).ngroups == 8
    one = found[(found["device"] == "a100") & (found["context"] == 8000) & (found["k"] == 1)]
    asked = replace(BASE, device="a100", acceptance=(0.6,), k=1, context=8000.0)
    wanted = answer(asked, with_errors=False)
    assert one["speed_up"].tolist() == wanted.prediction.speed_up
    assert one["low"].tolist() == wanted.prediction.low
    assert one["best_k"].tolist() == wanted.prediction.best_k
    # 72 GB less 16.1 and 0.85 of weights, at 131,072 and 4,096 byte a token, over 8002 tokens: 50.9
    assert set(one["most_in_flight"]) == {50}
    assert one["concurrency"].max() == 32


def test_a_question_that_memory_has_no_room_for_has_no_row() -> None:
    found = survey(BASE, ("h100",), CURVES, (500.0, 1e6), (3,))
    assert set(found["context"]) == {500.0}


def test_another_mistake_is_not_passed_over() -> None:
    with pytest.raises(UserError, match="rises at position 1"):
        survey(BASE, ("h100",), {"rising": (0.4, 0.6)}, (500.0,), (2,))
