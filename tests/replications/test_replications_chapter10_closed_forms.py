from __future__ import annotations

import pandas as pd
import pytest

from speclab.replications.chapter10 import closed_forms


def test_table_1_of_leviathan_et_al_as_printed() -> None:
    shown = [
        (row.alpha, row.k, f"{row.operations:.2f}", f"{row.speed:.2f}")
        for row in closed_forms.table1().itertuples(index=False)
    ]
    assert shown == [
        (0.6, 2, "1.53", "1.96"), (0.7, 3, "1.58", "2.53"), (0.8, 2, "1.23", "2.44"),
        (0.8, 5, "1.63", "3.69"), (0.9, 2, "1.11", "2.71"), (0.9, 10, "1.60", "6.86"),
    ]  # fmt: skip


def test_draws_fall_short_of_equation_1_by_the_last_pass() -> None:
    table = closed_forms.draws().set_index(["alpha", "k"])
    simulated, closed = table["simulated_tokens_per_pass"], table["closed_form_tokens_per_pass"]
    assert simulated[0.6, 2] == pytest.approx(1.9493907, abs=5e-8)
    assert simulated[0.8, 4] == pytest.approx(3.3527396, abs=5e-8)
    assert closed[0.8, 4] == pytest.approx(3.3616)
    assert len(table) == 6
    assert ((simulated < closed) & (simulated > 0.99 * closed)).all()


@pytest.fixture(scope="module")
def theorems() -> pd.DataFrame:
    return closed_forms.theorems().set_index(["target", "drafter", "alpha", "k"])


@pytest.mark.parametrize(
    ("target", "drafter", "printed"),
    # c, c_hat, theorem 3.8, simulated, theorem 3.11, simulated, as the source prints them for alpha 0.7, gamma 3
    [
        ("llama-3-8b", "mtp-head-8b", [".09046", ".09906", "1.992", "1.983", "1.696", "1.684"]),
        ("llama-3-8b", "llama-3.2-1b", [".15197", ".16466", "1.740", "1.731", "1.774", "1.763"]),
        ("llama-3-70b", "mtp-head-70b", [".02638", ".02743", "2.347", "2.341", "1.612", "1.600"]),
    ],
)
def test_theorems_as_the_source_prints_them(
    theorems: pd.DataFrame, target: str, drafter: str, printed: list[str]
) -> None:
    row = theorems.loc[(target, drafter, 0.7, 3)]
    costs = [f"{row.draft_cost:.5f}"[1:], f"{row.draft_operations:.5f}"[1:]]
    ratios = [row.speed_up_closed_form, row.speed_up_simulated, row.operations_closed_form, row.operations_simulated]
    assert costs + [f"{ratio:.3f}" for ratio in ratios] == printed


def test_all_eight_pairs_agree_within_a_hundredth(theorems: pd.DataFrame) -> None:
    assert len(theorems) == 8
    for name in ("speed_up", "operations"):
        ratio = theorems[f"{name}_simulated"] / theorems[f"{name}_closed_form"]
        assert ratio.between(0.99, 1.01).all()
