from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from speclab.replications import published
from speclab.replications.lab09.against import DERIVED, PROMPTS, ROLES, against


def finding(name: str, value: float, arm: str, workload: str = "chat", **more: object) -> dict[str, object]:
    row = {"concurrency": 1.0, "position": np.nan, "status": "ok"} | more
    return {"finding": name, "arm": arm, "workload": workload, "value": value, **row}


ROWS = pd.DataFrame(
    [
        finding("time_per_output_token", 6.0, "baseline"),
        finding("time_per_output_token", 6.0, "baseline", "completion"),
        finding("time_per_output_token", 6.0, "baseline", "revision"),
        finding("system_throughput", 100.0, "baseline", concurrency=128.0),
        finding("system_throughput", 150.0, "baseline", concurrency=256.0),
        finding("implied_step_time", 12.0, "ngram-k8"),
        finding("implied_step_time", 13.5, "ngram-k8", "completion"),
        finding("implied_step_time", 13.0, "ngram-k8", "revision"),
        finding("drafting_time_per_position", 2.0, "draft-1b-k3"),
        finding("drafting_time_per_position", 0.5, "eagle3-k3"),
        finding("crossover", 180.0, "eagle3-k3", concurrency=np.nan),
        finding("crossover", np.nan, "draft-1b-k3", concurrency=np.nan, status="not reached"),
        *(
            finding("acceptance_by_position", 0.4 / 2**place, "ngram-k8", concurrency=256.0, position=float(place))
            for place in range(8)
        ),
    ]
)


@pytest.fixture
def beside() -> pd.DataFrame:
    table = against(ROWS, published.read("lab09"), {"chat": 52.0})
    return table.set_index("id")


def test_each_published_figure_has_one_row_in_its_order(beside: pd.DataFrame) -> None:
    assert beside.index.tolist() == published.read("lab09")["id"].tolist()
    assert beside.index.is_unique


def test_a_figure_of_the_same_name_is_taken_from_the_findings(beside: pd.DataFrame) -> None:
    assert beside.loc["c02", "ours"] == 180.0
    assert beside.loc["c02", "difference"] == pytest.approx(180 / 226 - 1)
    assert np.isnan(beside.loc["c01", "ours"]), "a crossover that is not reached is no number"


@pytest.mark.parametrize(
    ("row", "ours"),
    [
        ("b04", 1.5),  # 150 / 100
        ("d05", 4.0),  # 2.0 / 0.5
        ("d06", 0.75),  # 1 - 1/4
        ("n08", 7.5 / 6.0 - 1),  # dearest extra time 13.5 - 6, cheapest 12 - 6
        ("n10", 1 / 128),  # halved seven times
        ("n11", 0.4 * (1 / 16 + 1 / 32 + 1 / 64 + 1 / 128)),
        ("w01", 52.0),
        ("c04", 989e12 / 3.35e12),  # H100 data sheet, dense BF16 and HBM3
        ("c03", 989e12 / 3.35e12 / 4),
        ("b02", 1e3 * 16_059_990_016 / 3.35e12),  # resident bytes of Llama 3 8B in BF16
        ("d03", 1e3 * 2 * 1_235_746_816 / 3.35e12),  # Llama 3.2 1B, its tied head read once
    ],
)
def test_a_figure_that_follows_is_worked_out(beside: pd.DataFrame, row: str, ours: float) -> None:
    assert beside.loc[row, "ours"] == pytest.approx(ours)


def test_roles_and_rules_name_published_rows_only() -> None:
    ids = set(published.read("lab09")["id"])
    assert set(ROLES) | set(DERIVED) | set(PROMPTS) <= ids


def test_in_a_measured_lab_only_prompts_are_inputs() -> None:
    table = against(ROWS, published.read("lab09"), {"chat": 52.0}, is_measured=True).set_index("id")
    assert set(table.index[table["role"] == "input"]) == set(PROMPTS)
    assert set(table["role"]) == {"input", "arithmetic", "bound", "result"}
    assert table.loc["n06", "role"] == "result"
