from __future__ import annotations

import pandas as pd
import pytest

from speclab.findings.long_table import findings
from speclab.findings.pairs import pair_state, state, with_baseline

FIGURES = {"system_throughput": 100.0, "user_throughput": 50.0, "step_time": 20.0, "time_per_output_token": 20.0}


@pytest.mark.parametrize(
    ("ours", "theirs", "standing"),
    [
        ("sha256:a", "sha256:a", "ok"),
        ("sha256:a", "sha256:b", "failed check"),  # a flag in one of them only
        (None, "sha256:b", "ok"),  # an older table: not known
    ],
)
def test_a_pair_under_other_conditions_has_failed_a_check(cell_row, ours, theirs, standing):
    cells = pd.DataFrame(
        [
            cell_row("baseline", 1, conditions=theirs, **FIGURES),
            cell_row("ngram-k8", 1, conditions=ours, **FIGURES),
        ]
    )
    pairs = with_baseline(cells).set_index("arm")
    assert pair_state(pairs, "speed_up").to_dict() == {"baseline": "ok", "ngram-k8": standing}
    assert state(pairs, "system_throughput")["ngram-k8"] == "ok", "the cell itself is sound"
    found = findings(cells, pd.DataFrame(), {"baseline": 0, "ngram-k8": 8}).set_index("finding")
    assert (found.loc["speed_up", "status"], found.loc["speed_up", "value"]) == (standing, 1.0)


def test_tables_without_conditions_are_read(cell_row):
    cells = pd.DataFrame([cell_row("baseline", 1, **FIGURES), cell_row("ngram-k8", 1, **FIGURES)])
    assert pair_state(with_baseline(cells), "speed_up").tolist() == ["ok", "ok"]


@pytest.mark.parametrize("arm", ["baseline", "ngram-k8"])
def test_a_pair_rests_on_the_checks_that_bear_on_what_it_compares(cell_row, arm):
    cells = pd.DataFrame([cell_row(name, 1, **FIGURES) for name in ("baseline", "ngram-k8")])
    bad = cells.assign(failed_checks=cells["arm"].map({arm: "bunched events"}))
    found = findings(bad, pd.DataFrame(), {"baseline": 0, "ngram-k8": 8})
    statuses = found[found["arm"] == "ngram-k8"].set_index("finding")["status"]
    assert statuses["speed_up"] == "ok"
    assert set(statuses[["break_even_length", "drafting_time", "drafting_time_per_position"]]) == {"failed check"}
