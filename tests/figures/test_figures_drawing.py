from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from speclab import figures, lab, results
from speclab.figures.panels import crowded, spread
from speclab.figures.style import GREY, styles_of


@pytest.fixture(scope="module")
def found() -> results.Results:
    """The committed results of the simulated lab."""
    return results.of("lab09", "simulated")


Draw = Callable[[results.Results], Figure]
DRAWINGS: dict[str, Draw] = {
    "speed_up": lambda found: figures.speed_up(found.findings),
    "arms_at_one": lambda found: figures.arms_at_one(found.findings),
    "trade_off": lambda found: figures.trade_off(found.findings, {"baseline": 256, "eagle3-k3": 128}),
    "acceptance": lambda found: figures.acceptance_over_concurrency(found.findings),
    "step_anatomy": lambda found: figures.step_anatomy(found.findings),
    "break_even": lambda found: figures.break_even(found.findings, ("eagle3-k3", "draft-1b-k3")),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_axes_are_labelled_and_the_source_is_written_on_the_figure(found: results.Results, name: str) -> None:
    figure = DRAWINGS[name](found)
    assert all(axis.get_xlabel() for axis in figure.axes)
    assert figure.get_supxlabel().endswith("simulated (h100-sxm)")


def test_a_figure_is_the_same_to_the_byte(found: results.Results, tmp_path: Path) -> None:
    for folder in ("first", "second"):
        figures.keep(figures.speed_up(found.findings), "speed_up", tmp_path / folder)
    first, second = ((tmp_path / folder / "speed_up.svg").read_bytes() for folder in ("first", "second"))
    assert first == second
    assert b"<svg" in first


def test_the_speed_up_has_a_line_for_each_arm_and_the_crossings_of_the_findings(found: results.Results) -> None:
    chat = figures.speed_up(found.findings).axes[0]
    lines = [line for line in chat.lines if len(line.get_xdata()) == len(found.lab.concurrencies)]
    assert [line.get_color() for line in lines] == [style_of(arm).colour for arm in found.lab.arms[1:]]
    rings = sorted(float(line.get_xdata()[0]) for line in chat.lines if line.get_color() == "white")
    crossings = found.findings.query("finding == 'crossover' and workload == 'chat' and status == 'ok'")
    assert rings == pytest.approx(sorted(crossings["value"]))


def test_the_trade_off_holds_every_point_and_calls_out_the_two_of_the_report(found: results.Results) -> None:
    drawn = figures.trade_off(found.findings, {"eagle3-k3": 128, "baseline": 256}, {"eagle3-k3": (150, 17_753)})
    axis = drawn.axes[0]
    curves = {line.get_label(): line for line in axis.lines if len(line.get_xdata()) == len(found.lab.concurrencies)}
    assert len(curves) == len(found.lab.arms)
    called = {text.get_text().splitlines()[0]: text.get_text() for text in axis.texts if "in flight" in text.get_text()}
    assert set(called) == {"EAGLE-3, k=3", "baseline"}
    for arm, concurrency in (("eagle3-k3", 128), ("baseline", 256)):
        where = {"arm": arm, "workload": "chat", "concurrency": concurrency}
        system, user = (found.value(f"{side}_throughput", **where) for side in ("system", "user"))
        assert f"{concurrency} in flight:\n{system:,.0f}, {user:.0f} each" in called[style_of(arm).label]
    assert [text.get_text() for text in axis.texts].count("published") == 1
    grey = {name: line.get_marker() for name, line in curves.items()}
    assert len(set(grey.values())) == len(grey), "told apart without colour"


def test_labels_keep_their_places_where_they_have_room_and_never_lie_on_each_other() -> None:
    assert spread([1.0, 5.0, 5.5, 6.0], gap=1.0) == [1.0, 5.0, 6.0, 7.0]


def test_lines_that_start_close_together_are_crowded() -> None:
    assert crowded([1.0, 3.0, 1.4], height=10.0, rows=20)  # names are half a unit high, the gap is 0.4
    assert not crowded([1.0, 3.0, 1.6], height=10.0, rows=20)
    assert not crowded([2.0], height=10.0)


def test_what_failed_a_check_is_grey_and_the_figure_says_so(partly_failed: results.Results) -> None:
    figure = figures.speed_up(partly_failed.findings)
    grey = sum(len(line.get_xdata()) for axis in figure.axes for line in axis.lines if line.get_color() == GREY)
    assert 0 < grey == len(partly_failed.rows("speed_up").query("status != 'ok'"))
    assert "grey: failed a check" in figure.get_supxlabel()
    assert "grey" not in figures.speed_up(results.of("lab09", "simulated").findings).get_supxlabel()


def test_every_arm_of_every_lab_has_a_look_of_its_own() -> None:
    for name in lab.names():
        looks = [ARMS[arm] for arm in lab.load(name).arms]
        assert len({look.marker for look in looks}) == len(looks), "markers tell arms apart in a grey print"
        assert len({to_rgb(look.colour) for look in looks}) == len(looks)
