from __future__ import annotations

import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from speclab import lab as labs
from speclab.figures.style import GREY, styles_of
from speclab.replications.chapter10 import figures
from speclab.replications.chapter10.figures.speculation_presets import PRESET_STYLES, preset_style

SOURCE = "simulated (h100-sxm)"
WORKLOADS = {"chat": "Chat", "voice": "Real-time voice"}
DEVICES = {"h100-sxm": "H100 SXM", "b200": "B200"}


def sweep() -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"device": device, "workload": workload, "lever": preset, "metric": metric, "change": change}
            for device, by in (("h100-sxm", 1.0), ("b200", 0.1))
            for workload, preset, gain, time in (
                ("chat", "baseline", 0.0, 0.0),
                ("voice", "baseline", 0.0, 0.0),
                ("voice", "mtp", 1.42 * by, -0.45),
                ("chat", "mtp", 0.27 * by, -0.51),
            )
            for metric, change in (("goodput_per_gpu", gain), ("tpot_p99_s", time))
        ]
    )


def widths(axis: object) -> list[float]:
    return [patch.get_width() for patch in axis.patches if isinstance(patch, Rectangle)]  # type: ignore[attr-defined]


def test_a_bar_is_the_change_of_its_workload_on_that_device() -> None:
    figure = figures.gains(sweep(), "h100-sxm", WORKLOADS, SOURCE)
    goodput, time = figure.axes
    assert widths(goodput) == pytest.approx([0.27, 1.42])
    assert widths(time) == pytest.approx([-0.51, -0.45])
    assert [label.get_text() for label in goodput.get_yticklabels()] == list(WORKLOADS.values())
    assert figure.get_supxlabel() == SOURCE


def test_what_misses_its_slos_is_hollow_and_off_the_front() -> None:
    points = pd.DataFrame(
        {
            "device": ["h100-sxm", "h100-sxm", "b200"],
            "workload": "chat",
            "lever": ["baseline", "mtp", "mtp"],
            "goodput_per_gpu": [1.4, 1.8, 4.0],
            "tpot_p99_s": [0.033, 0.016, 0.007],
            "slo_1x": [0.95, 0.95, 0.80],
        }
    )
    figure = figures.frontier(points, WORKLOADS, DEVICES, SOURCE, 0.9)
    lines = figure.axes[0].lines
    faces = [line.get_markerfacecolor() for line in lines[:3]]
    assert faces == [PRESET_STYLES["baseline"].colour, PRESET_STYLES["mtp"].colour, "none"]
    assert list(lines[3].get_xdata()) == pytest.approx([16.0])  # type: ignore[call-overload]
    assert figure.axes[1].get_title(loc="left") == "Real-time voice"


def test_a_charge_has_its_own_bar_beside_the_free_one() -> None:
    charges = pd.DataFrame(
        [
            {"workload": "voice", "lever": preset, "charged": charged, "change": change}
            for preset, free, paid in (("mtp", 1.42, 1.40), ("draft-1b", 1.74, 1.09))
            for charged, change in (("none", free), ("both", paid))
        ]
    )
    head, model = figures.charged(charges, WORKLOADS, SOURCE).axes
    assert (widths(head), widths(model)) == ([1.42, 1.40], [1.74, 1.09])
    assert [text.get_text() for text in model.texts] == ["+174%", "+109%"]
    assert [label.get_text() for label in head.get_yticklabels()] == ["Real-time voice"]


def test_a_drafter_looks_the_same_in_the_lab_and_here() -> None:
    styles = styles_of(labs.load("lab09"))
    assert PRESET_STYLES["baseline"] == styles["baseline"]
    for preset, arm in (("draft-1b", "draft-1b-k3"), ("eagle3", "eagle3-k3"), ("ngram", "ngram-k8")):
        assert (PRESET_STYLES[preset].colour, PRESET_STYLES[preset].marker) == (styles[arm].colour, styles[arm].marker)
    assert len({to_rgb(each.colour) for each in PRESET_STYLES.values()}) == len(PRESET_STYLES)
    assert preset_style("unheard-of").colour == GREY
