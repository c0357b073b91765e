from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from speclab.book import widget
from speclab.errors import UserError

WORDS = {"label": 'Costs & "gains"', "source": "simulated (H100)", "without_script": "See the figure."}


def test_a_widget_says_what_it_is_where_from_and_what_stands_in_for_it() -> None:
    made = widget.html("animation", {"x": 1}, **WORDS)
    assert 'aria-label="Costs &amp; &quot;gains&quot;"' in made
    assert '<span class="source-badge source-simulated">simulated (H100)</span>' in made
    assert '<p class="widget-without-script">See the figure.</p>' in made


@pytest.mark.parametrize("kind", ["animation", "explorer"])
def test_a_widget_asks_for_no_other_file(kind: widget.Kind) -> None:
    made = widget.html(kind, {}, **WORDS)
    assert not re.search(r"\b(src|href)=|@import|\bimport\(|\bfetch\(|XMLHttpRequest|WebSocket", made)
    assert re.findall(r"https?://[\w./]+", made) == ["http://www.w3.org/2000/svg"]  # a name, and no address


def test_data_are_read_back_to_six_digits_and_cannot_end_their_element() -> None:
    data = {"text": "</script><b>", "third": 1 / 3, "whole": 40.0, "none": None, "list": [(1.0, True)]}
    (found,) = re.findall(r'<script type="application/json">(.*?)</script>', widget.html("explorer", data, **WORDS))
    assert json.loads(found) == {
        "text": "</script><b>", "third": 0.333333, "whole": 40, "none": None, "list": [[1, True]],
    }  # fmt: skip


def test_a_missing_number_is_none_and_not_nan() -> None:
    with pytest.raises(ValueError, match="JSON"):
        widget.to_json({"x": float("nan")})


def test_a_widget_without_a_source_is_refused() -> None:
    with pytest.raises(UserError, match="names no source"):
        widget.html("animation", {}, label="x", source="guessed", without_script="x")


def test_keeps_the_piece_where_chapters_take_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECLAB_ROOT", str(tmp_path))
    widget.keep("explorer", {"x": 1}, "try", **WORDS)
    kept = (tmp_path / "book" / "widgets" / "try.html").read_text(encoding="utf-8")
    assert kept == widget.html("explorer", {"x": 1}, **WORDS)
