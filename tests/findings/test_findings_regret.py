from __future__ import annotations

import numpy as np
import pytest

from speclab.findings.intervals import DRAWS
from speclab.findings.regret import regret
from speclab.findings.speeds import BY_ITSELF, Speed, mixed


def at(**values: float) -> dict[str, Speed]:
    return {"baseline": BY_ITSELF} | {arm: Speed(value, None) for arm, value in values.items()}


PLACES = {
    "chat": {1.0: at(head=2.0, lookup=0.8), 64.0: at(head=0.9, lookup=0.7)},
    "revision": {1.0: at(head=2.0, lookup=4.0)},
}
PARTS = {1.0: {"chat": 0.5, "revision": 0.5}}


def test_the_regret_is_what_the_workloads_own_best_arm_would_have_added() -> None:
    table = regret(PLACES, mixed(PLACES, PARTS), PARTS)
    of = table.set_index(["arm", "workload", "concurrency"])["value"]
    assert of["lookup", "chat", 1.0] == pytest.approx(1 - 0.8 / 2.0)
    assert of["head", "chat", 1.0] == 0.0
    assert of["baseline", "chat", 1.0] == pytest.approx(0.5)
    assert of["head", "chat", 64.0] == pytest.approx(0.1), "the baseline is the best there"
    assert of["head", "revision", 1.0] == pytest.approx(0.5)
    # apart: 0.5/2 + 0.5/4 of the time, 8/3 times as fast; the head for all is 2 times as fast
    assert of["head", "mix", 1.0] == pytest.approx(1 - 2 / (8 / 3))
    assert set(table.loc[table["workload"] == "mix", "best"]) == {"head, lookup"}


def test_its_interval_comes_from_the_speeds() -> None:
    noise = np.random.default_rng(2).lognormal(0, 0.05, DRAWS)
    table = regret({"chat": {1.0: {"baseline": BY_ITSELF, "head": Speed(2.0, 2.0 * noise)}}}, {}, {})
    row = table.set_index("arm").loc["baseline"]
    assert row["low"] < row["value"] == 0.5 < row["high"]
