from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from speclab.findings.crossover import crossover
from speclab.predict.errors import CROSSOVER, SHARE, SPEED_UP, Predicted, discrepancy, summed
from speclab.replications.validation.predictions import agrees


def predicted(cell: str, measured: float, said: float, figure: str = SPEED_UP, method: str = "EAGLE-3") -> Predicted:
    return Predicted("a paper", "Llama", "H100", method, 3, "GSM8K", figure, cell, measured, said, "something else")


def test_errors_are_relative_and_the_worst_keeps_its_sign() -> None:
    (found,) = summed([predicted("batch 1", 2.0, 2.2), predicted("batch 2", 1.0, 0.7), predicted("batch 4", 4.0, 4.0)])
    assert found.n == 3
    assert found.mean_abs_error == pytest.approx((0.1 + 0.3 + 0) / 3)
    assert found.worst_error == pytest.approx(-0.3)
    assert found.worst_cell == "batch 2"


def test_a_share_of_a_step_is_off_by_points() -> None:
    (found,) = summed([predicted("batch 1", 0.2, 0.25, SHARE)])
    assert found.worst_error == pytest.approx(0.05)


def test_methods_and_figures_are_not_mixed() -> None:
    found = summed([predicted("a", 1, 1), predicted("b", 1, 2, CROSSOVER), predicted("c", 1, 3, method="EAGLE")])
    assert [(each.method, each.figure, each.n) for each in found] == [
        ("EAGLE-3", SPEED_UP, 1), ("EAGLE-3", CROSSOVER, 1), ("EAGLE", SPEED_UP, 1),
    ]  # fmt: skip


def test_an_entry_is_flat_and_strict_json() -> None:
    (found,) = summed([predicted("batch 1", 3.0, 3.1)])
    assert json.loads(json.dumps(found.row(), allow_nan=False))["mean_abs_error"] == 0.0333333


NAN = float("nan")


@pytest.mark.parametrize(
    ("curve", "status", "low", "high", "expected"),
    [
        ([1.5, 1.2, 0.9], "ok", 2, 4, True),  # crosses between 2 and 4
        ([1.5, 0.9, 0.8], "ok", 2, 4, False),
        ([1.5, 1.4, 1.3], "not reached", 4, NAN, True),  # above 1 to the end, both
        ([0.9, 0.8, 0.7], "not reached", 4, NAN, False),
        ([0.9, 0.8, 0.7], "not reached", NAN, 1, True),  # below 1 from the start, both
        ([1.5, 1.2, 0.9], "not resolved", NAN, NAN, None),
    ],
)
def test_a_predicted_crossing_is_held_against_what_the_lab_can_say(
    curve: list[float], status: str, low: float, high: float, expected: bool | None
) -> None:
    assert agrees(crossover([1, 2, 4], np.array(curve)), status, low, high) is expected


def test_f11_each_source_has_one_vote_on_how_far_the_model_is_off() -> None:
    one = [predicted(f"{at}", 1.0, math.exp(0.1)) for at in range(9)]
    other = replace(predicted("x", 1.0, math.exp(-0.3)), source="another")
    shares = predicted("y", 0.1, 0.9, SHARE)
    assert discrepancy([*one, other, shares]) == pytest.approx(math.sqrt((0.1**2 + 0.3**2) / 2))
    assert discrepancy([shares]) == 0
