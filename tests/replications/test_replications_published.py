from __future__ import annotations

import pytest

from speclab.errors import UserError
from speclab.findings.catalogue import BY_NAME
from speclab.replications import published


def test_lab_9_as_published():
    table = published.read("lab09").set_index("id")
    assert table.loc["b01", "value"] == 6.09
    assert table.loc["c02", ["arm", "value"]].tolist() == ["eagle3-k3", 226]
    # its own arithmetic: 13.56 / 6.09 = 2.23
    assert table.loc["n04", "value"] / table.loc["b01", "value"] == pytest.approx(table.loc["n05", "value"], abs=0.005)
    assert table["source"].str.match(r"Inference engineering, Lab 9 \(report\), section \d\d$").all()
    assert table["value"].notna().sum() == len(table) - 1
    assert table.loc["n13", ["low", "high"]].tolist() == [0.08, 0.23]


def test_its_finding_names_are_ours():
    table = published.read("lab09")
    named = table[table["finding"].notna()]
    assert len(named) >= 20
    assert set(named["finding"]) <= set(BY_NAME)
    assert (named["unit"] == named["finding"].map({name: row.unit for name, row in BY_NAME.items()})).all()


def test_an_unknown_table_names_the_known():
    with pytest.raises(UserError, match=r"there are: .*lab09"):
        published.read("lab10")


def test_what_others_measured_says_where_it_stands():
    table = published.read("others_measured")
    assert table["id"].is_unique
    assert table["source"].str.startswith("https://").all()
    assert table[["quantity", "method", "value", "unit", "model", "kind"]].notna().all(axis=None)
    named = table[table["finding"].notna()]
    assert set(named["finding"]) <= set(BY_NAME)
    assert (named["unit"] == named["finding"].map({name: row.unit for name, row in BY_NAME.items()})).all()
    assert set(table["workload"].dropna()) <= {"chat", "completion", "revision"}


def test_what_others_measured_is_what_they_say():
    """By the pages that the rows name: figure 1 of the paper, a constant of vLLM's test, a pull request's run."""
    value = published.read("others_measured").set_index("id")["value"]
    assert value["f1-eagle3-sg-1"] == 1.712
    assert value[["ct-llama", "ct-llama-0", "ct-llama-1", "ct-llama-2"]].tolist() == [2.60, 0.7296, 0.5208, 0.3545]
    assert value[[f"p24344-ngram-{place}" for place in range(5)]].tolist() == [0.81, 0.74, 0.70, 0.68, 0.66]
    # the length is 1 and the shares of its positions: 1 + 0.7296 + 0.5208 + 0.3545
    assert 1 + value[["ct-llama-0", "ct-llama-1", "ct-llama-2"]].sum() == pytest.approx(value["ct-llama"], abs=0.01)
    # the derived step cost is the traces' return over the speed-up of their means over requests
    assert value["tm-eagle3-sg-k3"] / value["f1-eagle3-sg-1"] == pytest.approx(value["be-eagle3-sg-1"], abs=0.002)
