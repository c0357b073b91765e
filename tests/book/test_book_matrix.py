from __future__ import annotations

import re
from xml.etree import ElementTree

import pandas as pd
import pytest

from speclab.book import matrix

WORKLOADS = {"chat": "Chat", "voice": "Real-time voice"}


def rows(**changes: float | None) -> pd.DataFrame:
    """All cells of two workloads at +1%, but for those that are given as ``workload_metric=change``."""
    cells = [(workload, metric.key) for workload in WORKLOADS for metric in matrix.METRICS]
    table = pd.DataFrame(cells, columns=["workload", "metric"]).assign(change=0.01, mark="α")
    for name, change in changes.items():
        workload, _, metric = name.partition("_")
        table.loc[(table["workload"] == workload) & (table["metric"] == metric), "change"] = change
    return table


def cells(made: str) -> list[ElementTree.Element]:
    table = re.search(r"<table.*</table>", made, re.S)
    assert table is not None
    return list(ElementTree.fromstring(table[0]).iter("td"))


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (0.02, ""), (-0.02, ""), (0.021, "↑"), (-0.0999, "↓"), (0.10, "↑↑"), (-0.4999, "↓↓"), (0.50, "↑↑↑"),
        (1.42, "↑↑↑"), (-0.51, "↓↓↓"),
    ],
)  # fmt: skip
def test_arrows_stand_for_the_band_of_a_change(change: float, shown: str) -> None:
    assert matrix.arrows(change) == shown


@pytest.mark.parametrize(
    ("change", "better", "found"),
    [(0.27, "higher", "better"), (0.27, "lower", "worse"), (-0.51, "lower", "better"), (-0.02, "higher", "same")],
)
def test_a_change_is_judged_by_the_direction_of_its_metric(change: float, better: matrix.Better, found: str) -> None:
    assert matrix.verdict(change, better) == found


def test_a_cell_holds_verdict_arrows_percent_and_marks() -> None:
    first = cells(matrix.html(rows(chat_goodput_per_gpu=0.2695), "MTP", WORKLOADS))[0]
    assert "".join(first.itertext()).split() == ["✓", "↑↑", "+27%", "α"]
    assert first.get("class") == "better"
    assert first.find("span").get("aria-label") == "better"  # type: ignore[union-attr]


def test_a_metric_that_is_better_here_and_worse_there_stands_out() -> None:
    made = matrix.html(rows(chat_itl_p99_s=-0.43, voice_itl_p99_s=0.06, chat_j_per_tok=-0.2), "MTP", WORKLOADS)
    assert [cell.get("class") for cell in cells(made) if "flips" in str(cell.get("class"))] == [
        "better flips",
        "worse flips",
    ]


def test_no_value_is_a_dash() -> None:
    found = cells(matrix.html(rows(voice_usd_per_mtok=None), "MTP", WORKLOADS))
    assert ["".join(cell.itertext()) for cell in found].count("–") == 1


def test_a_cell_that_lacks_or_occurs_twice_is_refused() -> None:
    with pytest.raises(LookupError):
        matrix.html(rows().iloc[1:], "MTP", WORKLOADS)
    with pytest.raises(LookupError):
        matrix.html(pd.concat([rows(), rows().iloc[:1]]), "MTP", WORKLOADS)
