from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest

from speclab.replications.chapter10.widgets import matrix

WORKLOADS = {"chat": "Chat", "voice": "Real-time voice"}


def rows(**changed: tuple[float | None, str, int]) -> pd.DataFrame:
    """All cells of two workloads at +1%, but for those given as ``workload_metric=(change, verdict, size)``."""
    cells = [(workload, metric.key) for workload in WORKLOADS for metric in matrix.METRICS]
    table = pd.DataFrame(cells, columns=["workload", "metric"]).assign(
        change=0.01, verdict="same", size=0, mark="$ alpha"
    )
    for name, cell in changed.items():
        workload, _, metric = name.partition("_")
        table.loc[(table["workload"] == workload) & (table["metric"] == metric), ["change", "verdict", "size"]] = cell
    return table


def cells(made: str) -> list[ElementTree.Element]:
    table = re.search(r"<table.*</table>", made, re.S)
    assert table is not None
    return list(ElementTree.fromstring(table[0]).iter("td"))


def test_a_cell_holds_verdict_arrows_percent_and_marks() -> None:
    first = cells(matrix.html(rows(chat_goodput_per_gpu=(0.2695, "better", 2)), "MTP", WORKLOADS))[0]
    assert "".join(first.itertext()).split() == ["✓", "↑↑", "+27%", "$α"]
    assert first.get("class") == "better"
    assert first.find("span").get("aria-label") == "better"  # type: ignore[union-attr]


def test_what_falls_points_down_and_what_stays_has_no_sign() -> None:
    found = cells(matrix.html(rows(chat_tpot_p99_s=(-0.51, "better", 3)), "MTP", WORKLOADS))
    assert "".join(found[4].itertext()).split() == ["✓", "↓↓↓", "-51%", "$α"]
    assert "".join(found[0].itertext()).split() == ["+1%", "$α"]


def test_a_metric_that_is_better_here_and_worse_there_stands_out() -> None:
    changed = {
        "chat_itl_p99_s": (-0.43, "better", 2),
        "voice_itl_p99_s": (0.06, "worse", 1),
        "chat_j_per_tok": (-0.2, "better", 2),
    }
    made = matrix.html(rows(**changed), "MTP", WORKLOADS)
    assert [cell.get("class") for cell in cells(made) if "flips" in str(cell.get("class"))] == [
        "better flips",
        "worse flips",
    ]


def test_no_value_is_a_dash() -> None:
    found = cells(matrix.html(rows(voice_usd_per_mtok=(None, "same", 0)), "MTP", WORKLOADS))
    assert ["".join(cell.itertext()) for cell in found].count("–") == 1


def test_kept_tables_say_where_they_are_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECLAB_ROOT", str(tmp_path))
    matrix.keep({"MTP, k<4": rows(), "1B": rows()}, "try", WORKLOADS, "simulated (h100-sxm)")
    kept = (tmp_path / "book" / "widgets" / "try.html").read_text(encoding="utf-8")
    captions = re.findall(r'<p class="table-caption">(.*)</p>', kept)
    label = '<span class="source-badge source-simulated">simulated (h100-sxm)</span>'
    assert captions == [f"{label} MTP, k&lt;4", f"{label} 1B"]
    assert kept.count("<table") == 2


def test_a_cell_that_lacks_or_occurs_twice_is_refused() -> None:
    with pytest.raises(LookupError):
        matrix.html(rows().iloc[1:], "MTP", WORKLOADS)
    with pytest.raises(LookupError):
        matrix.html(pd.concat([rows(), rows().iloc[:1]]), "MTP", WORKLOADS)
