from __future__ import annotations

import pandas as pd

from speclab.replications.validation.figures import speed_up_by_device


def table() -> pd.DataFrame:
    rows = [
        {
            "device": device, "context": context, "concurrency": at, "speed_up": ratio, "low": ratio - 0.1,
            "high": ratio + 0.1, "crossover": 32.0 if context == 500 else None,
        }
        for device in ("a", "b", "c", "d")
        for context, ratios in ((500, (2.0, 1.5, 0.5)), (8000, (2.0, 1.9)))
        for at, ratio in zip((1, 16, 64), ratios, strict=False)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_a_panel_for_each_device_with_a_ring_where_a_line_crosses() -> None:
    figure = speed_up_by_device(table(), {"a": "A", "b": "B", "c": "C", "d": "D"}, "simulated (test)")
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["A", "B", "C", "D"]
    for axis in figure.axes:
        short, long = (line for line in axis.lines if str(line.get_label()) in ("500", "8,000"))
        assert list(short.get_ydata()) == [2.0, 1.5, 0.5]
        assert list(long.get_xdata()) == [1, 16]  # it ends where memory is full
        rings = [list(line.get_xdata()) for line in axis.lines if line.get_marker() == "o"]
        assert rings == [[32.0], []]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["500", "8,000"]


def test_a_figure_says_where_its_numbers_come_from() -> None:
    figure = speed_up_by_device(table(), {"a": "A", "b": "B", "c": "C", "d": "D"}, "simulated (test)")
    assert figure.get_supxlabel().endswith("simulated (test)")
