from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from speclab.replications.map import tables as map_tables


def row(**changed: Any) -> dict[str, Any]:
    found = {
        "device": "h100", "acceptance": "0.7", "context": 2000.0, "k": 3, "concurrency": 1.0, "speed_up": 2.0,
        "status": "ok", "crossover": 120.4, "crossover_low": 90.6, "crossover_high": 150.2, "most_in_flight": 203,
    }  # fmt: skip
    return found | changed


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "120 (91–150)"),
        ({"crossover_low": np.nan}, "120 (to 150)"),
        ({"crossover_high": np.nan}, "120 (from 91)"),
        ({"crossover_high": None}, "120 (from 91)"),
        ({"crossover_low": np.nan, "crossover_high": np.nan}, "120 (any)"),
        ({"status": "always below", "crossover": np.nan}, "never"),
        ({"status": "always above", "crossover": np.nan}, "over 203"),
        ({"crossover": 204.0}, "over 203"),
        ({"crossover_high": 203.0}, "120 (91–203)"),
        ({"crossover_high": 204.0}, "120 (from 91)"),
    ],
)
def test_a_crossover_in_words(changed: dict[str, Any], said: str) -> None:
    assert map_tables.crossover(row(**changed)).split("\u00a0") == said.split(" ")


def test_a_row_for_each_question_and_a_dash_where_memory_is_full() -> None:
    rows = pd.DataFrame([row(), row(concurrency=64.0, speed_up=1.457), row(k=1, speed_up=1.6, crossover=180.0)])
    (printed,) = map_tables.printed(rows, k=3, at=(1, 64, 256)).to_dict("records")
    assert printed == {
        "GPU": "H100", "context": "2,000", "α": "0.7", "at\u00a01": "2.00", "at\u00a064": "1.46", "at\u00a0256": "–",
        "k=1": "180 (91–150)".replace(" ", "\u00a0"), "k=3": "120 (91–150)".replace(" ", "\u00a0"),
    }  # fmt: skip
