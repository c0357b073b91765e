from __future__ import annotations

import pandas as pd
import pytest

from speclab.findings.long_table import findings
from speclab.findings.pairs import with_baseline

FIGURES = {"system_throughput": 100.0, "user_throughput": 50.0, "step_time": 20.0, "time_per_output_token": 20.0}


@pytest.mark.parametrize(
    ("ours", "theirs", "state"),
    [
        ("sha256:a", "sha256:a", "ok"),
        ("sha256:a", "sha256:b", "failed check"),  # a flag in one of them only
        (None, "sha256:b", "ok"),  # an older table: not known
    ],
)
def test_a_pair_under_other_conditions_has_failed_a_check(cell_row, ours, theirs, state):
    cells = pd.DataFrame(
        [
            cell_row("baseline", 1, conditions=theirs, **FIGURES),
            cell_row("ngram-k8", 1, conditions=ours, **FIGURES),
        ]
    )
    pairs = with_baseline(cells).set_index("arm")
    assert pairs.loc["ngram-k8", "pair_state"] == state
    assert pairs.loc["baseline", "pair_state"] == "ok"
    assert pairs.loc["ngram-k8", "state"] == "ok", "the cell itself is sound"
    found = findings(cells, pd.DataFrame(), {"baseline": 0, "ngram-k8": 8}).set_index("finding")
    assert (found.loc["speed_up", "status"], found.loc["speed_up", "value"]) == (state, 1.0)


def test_tables_without_conditions_are_read(cell_row):
    cells = pd.DataFrame([cell_row("baseline", 1, **FIGURES), cell_row("ngram-k8", 1, **FIGURES)])
    assert with_baseline(cells)["pair_state"].tolist() == ["ok", "ok"]
