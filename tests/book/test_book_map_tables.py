from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from speclab.book import map_tables


def row(**changed: Any) -> dict[str, Any]:
    found = {
        "device": "h100", "acceptance": "0.7", "context": 2000.0, "k": 3, "concurrency": 1.0, "speed_up": 2.0,
        "status": "ok", "crossover": 120.4, "crossover_low": 90.6, "crossover_high": 150.2, "most_in_flight": 203,
    }  # fmt: skip
    return found | changed


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "120 (91 to 150)"),
        ({"crossover_low": np.nan, "crossover_high": np.nan}, "120 (1 or fewer to more than is asked for)"),
        ({"status": "always below", "crossover": np.nan}, "never pays"),
        ({"status": "always above", "crossover": np.nan}, "pays to 203, memory full"),
        ({"crossover": 204.0}, "pays to 203, memory full"),
    ],
)
def test_a_crossover_in_words(changed: dict[str, Any], said: str) -> None:
    assert map_tables.crossover(row(**changed)) == said


def test_a_row_for_each_question_and_a_dash_where_memory_is_full() -> None:
    rows = pd.DataFrame([row(), row(concurrency=64.0, speed_up=1.457), row(k=1, speed_up=1.6, crossover=180.0)])
    (printed,) = map_tables.printed(rows, {"h100": "H100 SXM"}, k=3, at=(1, 64, 256)).to_dict("records")
    assert printed == {
        "GPU": "H100 SXM", "context": "2,000", "acceptance": "0.7", "at 1": "2.00", "at 64": "1.46", "at 256": "–",
        "crossover, k=1": "180 (91 to 150)", "crossover, k=3": "120 (91 to 150)",
    }  # fmt: skip
