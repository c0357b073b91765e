from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from speclab.findings.compare import FINDINGS, compared

CellRow = Callable[..., dict[str, Any]]
Run = tuple[pd.DataFrame, pd.DataFrame]


@pytest.fixture
def a_run(cell_row: CellRow) -> Callable[..., Run]:
    """One run of two arms at two concurrencies, three repeats: tokens per second scatter by `noise`."""

    def build(factor: float = 1.0, *, seed: int, noise: float = 0.01, repeats: int = 3, **given: Any) -> Run:
        rng = np.random.default_rng(seed)
        cells, blocks = [], []
        for arm, rate in (("baseline", 100.0), ("eagle3-k3", 200.0 * factor)):
            for concurrency in (1, 4):
                for repeat in range(repeats):
                    tokens = rate * concurrency * rng.lognormal(0, noise, 10)
                    steps = tokens / (1.0 if arm == "baseline" else 2.5)
                    cells.append(
                        cell_row(
                            arm, concurrency, repeat=repeat, system_throughput=tokens.mean(),
                            user_throughput=tokens.mean() / concurrency, step_time=10.0,
                            tokens_per_step=tokens.sum() / steps.sum(), **given,
                        )
                    )  # fmt: skip
                    keys = {name: cells[-1][name] for name in ("arm", "workload", "concurrency", "repeat", "source")}
                    blocks.append(
                        pd.DataFrame(
                            {
                                **keys, "block": range(10), "seconds": 1.0, "tokens": tokens, "decode_tokens": tokens,
                                "steps": steps, "gap_ms": 10.0 * steps, "answers": 1.0, "answer_tokens": tokens,
                                "answer_ms": 10.0 * tokens, "answer_rates": tokens, "drafts": steps, "accepted": steps,
                            }
                        )
                    )  # fmt: skip
        return pd.DataFrame(cells), pd.concat(blocks, ignore_index=True)

    return build


def of(table: pd.DataFrame, finding: str, arm: str) -> pd.DataFrame:
    return table[(table["finding"] == finding) & (table["arm"] == arm)]


def test_an_arm_that_became_faster_is_told_from_the_baseline_that_did_not(a_run: Callable[..., Run]) -> None:
    cells, overall = compared(*a_run(seed=1), *a_run(1.1, seed=2))
    faster = of(cells, "system_throughput", "eagle3-k3")
    assert faster["status"].tolist() == ["higher", "higher"]
    assert faster["ratio"].tolist() == pytest.approx([1.1, 1.1], rel=0.02)
    assert ((faster["low"] < 1.1) & (faster["high"] > 1.1)).all()
    assert of(cells, "system_throughput", "baseline")["status"].tolist() == ["noise", "noise"]
    assert of(cells, "speed_up", "eagle3-k3")["status"].tolist() == ["higher", "higher"]
    assert of(cells, "tokens_per_step", "eagle3-k3")["status"].tolist() == ["noise", "noise"]
    whole = of(overall, "system_throughput", "eagle3-k3").iloc[0]
    assert whole["cells"] == 2
    assert whole["ratio"] == pytest.approx(1.1, rel=0.02)
    assert whole["high"] - whole["low"] < (faster["high"] - faster["low"]).min(), "two cells know more than one"


def test_two_runs_of_the_same_differ_in_no_more_cells_than_chance_would_have(a_run: Callable[..., Run]) -> None:
    """Of 2 x 2 cells in each of 8 pairs of runs 95% must hold 1: 1.6 of 32 are expected outside, 6 are too many."""
    outside = 0
    for seed in range(8):
        cells, _ = compared(*a_run(seed=seed), *a_run(seed=1000 + seed))
        outside += int((cells.loc[cells["finding"] == "system_throughput", "status"] != "noise").sum())
    assert outside <= 5


def test_what_only_one_run_has_and_what_failed_is_said(a_run: Callable[..., Run]) -> None:
    cells_a, blocks_a = a_run(seed=1)
    cells_b, blocks_b = a_run(seed=2)
    cells_b.loc[(cells_b["arm"] == "baseline") & (cells_b["concurrency"] == 4), "failed_checks"] = "occupancy"
    cells_b = cells_b[(cells_b["arm"] == "baseline") | (cells_b["concurrency"] == 1)]
    table, _ = compared(cells_a, blocks_a, cells_b, blocks_b)
    throughput = table[table["finding"] == "system_throughput"].set_index(["arm", "concurrency"])["status"]
    assert throughput.to_dict() == {
        ("baseline", 1): "noise",
        ("baseline", 4): "failed check",
        ("eagle3-k3", 1): "noise",
        ("eagle3-k3", 4): "only in A",
    }
    tokens = table[table["finding"] == "tokens_per_step"].set_index(["arm", "concurrency"])["status"]
    assert tokens["baseline", 4] == "noise", "what the text is does not rest on the occupancy"
    assert table.loc[table["status"] == "failed check", ["ratio", "low", "high"]].isna().all(axis=None)


def test_without_blocks_nothing_is_resolved(a_run: Callable[..., Run]) -> None:
    (cells_a, _), (cells_b, _) = a_run(seed=1), a_run(1.1, seed=2)
    table, overall = compared(cells_a, pd.DataFrame(), cells_b, pd.DataFrame())
    assert set(table["status"]) == {"not resolved"}
    assert table["ratio"].notna().all(), "the ratio is shown all the same"
    assert overall.empty


def test_a_run_without_a_baseline_compares_all_but_the_speed_up(a_run: Callable[..., Run]) -> None:
    runs = [[table[table["arm"] != "baseline"] for table in a_run(seed=seed)] for seed in (1, 2)]
    table, _ = compared(*runs[0], *runs[1])
    assert set(table["finding"]) == set(FINDINGS) - {"speed_up"}
