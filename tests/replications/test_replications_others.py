from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from speclab.replications.others import COLUMNS, others

ARMS = {("eagle3", 3): "eagle3-k3", ("ngram", 8): "ngram-k8"}


def published(finding: str, value: float, **more: object) -> dict[str, object]:
    row: dict[str, object] = {
        **{
            "id": finding,
            "finding": finding,
            "quantity": finding,
            "method": "eagle3",
            "k": 3,
            "dataset": "MT-Bench",
        },
        **{"workload": "chat", "concurrency": np.nan, "position": np.nan, "value": value, "unit": "x"},
        **{"model": "Llama", "device": "H100", "engine": "vLLM", "kind": "stated", "source": "https://example.org"},
    }
    return row | more


def finding(name: str, concurrency: float, value: float, **more: object) -> dict[str, object]:
    row: dict[str, object] = {
        **{"finding": name, "arm": "eagle3-k3", "workload": "chat", "concurrency": concurrency, "position": np.nan},
        **{"value": value, "low": value - 0.1, "high": value + 0.1, "status": "ok"},
    }
    return row | more


FOUND = pd.DataFrame(
    [
        finding("speed_up", 1.0, 2.0),
        finding("speed_up", 64.0, 1.5),
        finding("tokens_per_step", 1.0, 2.6),
        finding("tokens_per_step", 64.0, 2.7),
        finding("acceptance_by_position", 64.0, 0.75, position=0.0),
        finding("acceptance_by_position", 64.0, 0.55, position=1.0),
        finding("time_per_output_token", 1.0, 3.0, status="failed check"),
    ]
)
CURVES = pd.DataFrame(
    [
        {
            **{"drafter": drafter, "workload": "chat", "concurrency": at, "k": k, "status": "ok", "how": "replayed"},
            **{"tokens_per_step": 2.0, "tokens_low": 1.9, "tokens_high": 2.1},
            **{"ms_per_token": 3.5 + at, "low": 3.4 + at, "high": 3.6 + at},
        }
        for drafter in ("eagle3-k3", "ngram-k8")
        for at in (1.0, 64.0)
        for k in (1, 2)
    ]
)


def beside(*rows: dict[str, object], device: str = "h100-sxm") -> pd.DataFrame:
    return others(FOUND, CURVES, pd.DataFrame(rows), ARMS, "Llama", device)


def test_a_published_row_stands_beside_the_arms_own_figure() -> None:
    table = beside(published("speed_up", 1.6, concurrency=64.0))
    assert table.columns.tolist() == COLUMNS
    row = table.iloc[0]
    assert (row["ours"], row["low"], row["high"], row["how"]) == (1.5, 1.4, 1.6, "arm")
    assert row["difference"] == pytest.approx(1.5 / 1.6 - 1)
    assert row["setting"] == "H100, vLLM, MT-Bench"


def test_acceptance_is_taken_where_the_most_drafts_are_and_time_at_the_fewest_in_flight() -> None:
    table = beside(published("tokens_per_step", 2.5), published("speed_up", 1.9)).set_index("id")
    assert table.loc["tokens_per_step", "ours"] == 2.7
    assert table.loc["speed_up", "ours"] == 2.0
    at_second = beside(published("acceptance_by_position", 0.5, position=1.0))
    assert at_second["ours"].tolist() == [0.55]


def test_a_k_that_no_arm_has_is_read_among_the_curves() -> None:
    table = beside(
        published("tokens_per_step", 2.2, k=2, id="tokens"),
        published("reported_acceptance_length", 2.2, k=2, id="length"),
        published("time_per_output_token", 4.0, k=2, id="time"),
        published(
            "reported_acceptance_length", 4.0, k=2, method="ngram", id="n-gram's counters see drafted steps alone"
        ),
        published("speed_up", 1.4, k=2, id="no curve has it"),
    ).set_index("id")
    assert table.index.tolist() == ["tokens", "length", "time"]
    assert table["ours"].tolist() == [2.0, 2.0, 4.5]
    assert set(table["how"]) == {"replayed"}


def test_what_cannot_be_compared_is_left_out() -> None:
    assert beside(published("speed_up", 1.6, model="another")).empty
    assert beside(published("speed_up", 1.6, workload=None)).empty
    assert beside(published("speed_up", 1.6) | {"finding": None}).empty
    assert beside(published("time_per_output_token", 4.0)).empty, "ours failed a check"
    elsewhere = beside(published("speed_up", 1.6), published("tokens_per_step", 2.5), device="xeon-2-cores")
    assert elsewhere["finding"].tolist() == ["tokens_per_step"], "another device has another time, and the same text"
