from __future__ import annotations

import pytest

from speclab import published
from speclab.errors import UserError
from speclab.findings.table import UNITS


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
    assert set(named["finding"]) <= set(UNITS)
    assert (named["unit"] == named["finding"].map(UNITS)).all()


def test_an_unknown_table_names_the_known():
    with pytest.raises(UserError, match=r"there are: .*lab09"):
        published.read("lab10")
