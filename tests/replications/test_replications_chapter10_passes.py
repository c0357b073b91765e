from __future__ import annotations

import pandas as pd
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from speclab.figures.style import ORANGE
from speclab.replications.chapter10 import figures
from speclab.replications.chapter10.figures.passes import BOUNDS
from speclab.roofline.devices import device

SOURCE = "simulated (h100-sxm)"


def one_pass(kind: str, start_s: float, draft_s: float) -> dict[str, object]:
    return {"kind": kind, "start_s": start_s, "duration_s": 0.010, "draft_part_s": draft_s}


VARIANTS = pd.DataFrame(
    [
        {"variant": "off", "tokens_per_pass": 1.0, "tpot_p99_ms": 6.4, "horizon_s": 0.020,
         "passes": [one_pass("prefill", 0.0, 0.0), one_pass("decode", 0.010, 0.0)]},
        {"variant": "on", "tokens_per_pass": 2.7, "tpot_p99_ms": 3.1, "horizon_s": 0.010,
         "passes": [one_pass("decode", 0.0, 0.004)]},
    ]
)  # fmt: skip


def test_each_pass_is_as_long_as_it_took_and_its_drafting_is_marked() -> None:
    (axis,) = figures.replay(VARIANTS, {"off": "off", "on": "three drafts"}, SOURCE).axes
    bars = [patch for patch in axis.patches if isinstance(patch, Rectangle)]
    # a pass is two bars: drafting, and the rest
    assert [bar.get_width() for bar in bars] == pytest.approx([0, 10, 0, 10, 4, 6])
    assert bars[4].get_facecolor()[:3] == to_rgb(ORANGE)
    assert [bar.get_x() for bar in bars[-2:]] == pytest.approx([0, 4])
    assert [label.get_text() for label in axis.get_yticklabels()] == ["off", "three drafts"]
    assert [text.get_text() for text in axis.texts][1] == "2.70 tokens a pass, TPOT p99 3.1 ms"


def test_points_under_the_roof_have_the_colour_of_their_bound() -> None:
    table = pd.DataFrame(
        {
            "device": "h100-sxm", "batch": [1, 512],
            "plain_flop_per_byte": [1.0, 150.0], "plain_flop_per_s": [2.5e12, 4e14], "plain_bound": "memory",
            "verify_flop_per_byte": [4.0, 600.0], "verify_flop_per_s": [1e13, 5.4e14],
            "verify_bound": ["memory", "compute"],
        }
    )  # fmt: skip
    figure = figures.roofline(table, {"h100-sxm": device("h100-sxm")}, SOURCE)
    (axis,) = figure.axes
    assert not [each for each in axis.collections if isinstance(each, PathCollection)]
    points = {
        (float(line.get_xdata()[0]), line.get_marker()): line.get_markerfacecolor()  # type: ignore[index,arg-type]
        for line in axis.lines
        if line.get_markeredgecolor() == "#000000" and len(line.get_xdata()) == 1  # type: ignore[arg-type]
    }
    assert points == {
        (1.0, "o"): BOUNDS["memory"],
        (150.0, "o"): BOUNDS["memory"],
        (4.0, "s"): BOUNDS["memory"],
        (600.0, "s"): BOUNDS["compute"],
    }
    roof = axis.lines[0]
    assert max(roof.get_ydata()) == pytest.approx(989 * 0.55)  # type: ignore[arg-type]
    assert figure.get_supxlabel().endswith(SOURCE)


def test_closed_forms_have_a_line_on_which_both_agree() -> None:
    draws = pd.DataFrame({"closed_form_tokens_per_pass": [2.0, 3.0], "simulated_tokens_per_pass": [1.9, 3.0]})
    theorems = pd.DataFrame(
        {
            "speed_up_closed_form": [2.0], "speed_up_simulated": [2.1],
            "operations_closed_form": [1.6], "operations_simulated": [1.6],
        }
    )  # fmt: skip
    figure = figures.closed_forms(draws, theorems, SOURCE)
    assert len(figure.axes) == 3
    for axis in figure.axes:
        diagonal = axis.lines[0]
        assert list(diagonal.get_xdata()) == list(diagonal.get_ydata())  # type: ignore[call-overload]
    assert list(figure.axes[0].lines[1].get_ydata()) == [1.9, 3.0]  # type: ignore[call-overload]
