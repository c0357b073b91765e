from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from speclab import paths
from speclab.book import badge, table
from speclab.errors import UserError

FRAME = pd.DataFrame({"arm": ["baseline", "ngram <k8>"], "speed_up": [1.0, None]})


def test_a_failed_row_is_marked_and_kept() -> None:
    html = table.html(FRAME, "Speed-up & more", failed=[False, True])
    rows = html.split("<tbody>")[1].split("</tr>")[:2]
    assert '<tr class="failed">' not in rows[0]
    assert '<tr class="failed">' in rows[1]
    assert "ngram &lt;k8&gt;" in rows[1]
    assert "<td>–</td>" in rows[1]
    assert '<p class="table-caption">Speed-up &amp; more</p>' in html


def test_digits_are_significant_ones() -> None:
    html = table.html(pd.DataFrame({"value": [17753.123, 0.0123456, 295.04, 1.5]}), "x", digits=3)
    assert re.findall("<td>(.*?)</td>", html) == ["17,753", "0.0123", "295", "1.5"]


def test_an_empty_table_says_so() -> None:
    assert table.html(pd.DataFrame(), "Positions") == "<p>Positions: none.</p>"


def test_an_empty_table_is_kept_with_a_row_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "book", lambda: tmp_path)
    table.keep(pd.DataFrame(columns=["arm", "then"]), "switches")
    table.keep(pd.DataFrame(), "nothing")
    assert (tmp_path / "tables" / "switches.csv").read_text() == "arm,then\nnone,\n"
    assert (tmp_path / "tables" / "nothing.csv").read_text() == "table\nnone\n"


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("simulated (h100-sxm)", "simulated"),
        ("measured (vLLM 0.32.0, xeon)", "measured"),
        ("Published: Lab 9", "published"),
    ],
)
def test_a_badge_is_coloured_by_its_first_word(source: str, kind: str) -> None:
    assert kind in badge.KINDS
    assert badge.html(source).startswith(f'<span class="source-badge source-{kind}">')


@pytest.mark.parametrize("source", ["", "guessed (me)"])
def test_a_badge_must_name_a_source(source: str) -> None:
    with pytest.raises(UserError, match="published, simulated, measured"):
        badge.kind(source)
