from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from speclab import figures, lab, paths, results
from speclab.errors import UserError
from speclab.figures.panels import crowded, spread
from speclab.figures.style import GREY, ArmStyle, styles_of


@pytest.fixture(scope="module")
def found() -> results.Results:
    """The committed results of the simulated lab."""
    return results.of("lab09", "simulated")


Draw = Callable[[results.Results], Figure]
DRAWINGS: dict[str, Draw] = {
    "speed_up": lambda found: figures.speed_up(found.findings, styles_of(found.lab)),
    "arms_at_one": lambda found: figures.arms_at_one(found.findings, styles_of(found.lab)),
    "trade_off": lambda found: figures.trade_off(
        found.findings, styles_of(found.lab), {"baseline": 256, "eagle3-k3": 128}
    ),
    "acceptance": lambda found: figures.acceptance_over_concurrency(found.findings, styles_of(found.lab)),
    "step_anatomy": lambda found: figures.step_anatomy(found.findings, styles_of(found.lab)),
    "break_even": lambda found: figures.break_even(found.findings, styles_of(found.lab), ("eagle3-k3", "draft-1b-k3")),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_axes_are_labelled_and_the_source_is_written_on_the_figure(found: results.Results, name: str) -> None:
    figure = DRAWINGS[name](found)
    assert all(axis.get_xlabel() for axis in figure.axes)
    assert figure.get_supxlabel().endswith("simulated (h100-sxm)")


def test_a_figure_is_the_same_to_the_byte(found: results.Results, tmp_path: Path) -> None:
    for folder in ("first", "second"):
        drawn = figures.speed_up(found.findings, styles_of(found.lab))
        figures.keep(drawn, "speed_up", caption="", alt="", folder=tmp_path / folder)
    first, second = ((tmp_path / folder / "speed_up.svg").read_bytes() for folder in ("first", "second"))
    assert first == second
    assert b"<svg" in first


def test_the_speed_up_has_a_line_for_each_arm_and_the_crossings_of_the_findings(found: results.Results) -> None:
    chat = figures.speed_up(found.findings, styles_of(found.lab)).axes[0]
    lines = [line for line in chat.lines if len(line.get_xdata()) == len(found.lab.concurrencies)]
    assert [line.get_color() for line in lines] == [styles_of(found.lab)[arm].colour for arm in found.lab.arms[1:]]
    rings = sorted(float(line.get_xdata()[0]) for line in chat.lines if line.get_color() == "white")
    crossings = found.findings.query("finding == 'crossover' and workload == 'chat' and status == 'ok'")
    assert rings == pytest.approx(sorted(crossings["value"]))


def test_the_trade_off_holds_every_point_and_calls_out_the_two_of_the_report(found: results.Results) -> None:
    drawn = figures.trade_off(
        found.findings, styles_of(found.lab), {"eagle3-k3": 128, "baseline": 256}, {"eagle3-k3": (150, 17_753)}
    )
    axis = drawn.axes[0]
    curves = {line.get_label(): line for line in axis.lines if len(line.get_xdata()) == len(found.lab.concurrencies)}
    assert len(curves) == len(found.lab.arms)
    called = {text.get_text().splitlines()[0]: text.get_text() for text in axis.texts if "in flight" in text.get_text()}
    assert set(called) == {"EAGLE-3, k=3", "baseline"}
    for arm, concurrency in (("eagle3-k3", 128), ("baseline", 256)):
        where = {"arm": arm, "workload": "chat", "concurrency": concurrency}
        system, user = (found.value(f"{side}_throughput", **where) for side in ("system", "user"))
        assert f"{concurrency} in flight:\n{system:,.0f}, {user:.0f} each" in called[styles_of(found.lab)[arm].label]
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
    figure = figures.speed_up(partly_failed.findings, styles_of(partly_failed.lab))
    grey = sum(len(line.get_xdata()) for axis in figure.axes for line in axis.lines if line.get_color() == GREY)
    assert 0 < grey == len(partly_failed.rows("speed_up").query("status != 'ok'"))
    assert "grey: failed a check" in figure.get_supxlabel()
    whole = results.of("lab09", "simulated")
    assert "grey" not in figures.speed_up(whole.findings, styles_of(whole.lab)).get_supxlabel()


def test_what_a_notebook_shows_changes_with_the_figure(tmp_path: Path) -> None:
    def shown(value: str) -> figures.Kept:
        figure = Figure()
        figure.text(0.5, 0.5, value)
        return figures.keep(figure, "number", caption="One number.", alt="A number", folder=tmp_path)

    first, again, other = (repr(shown(value)) for value in ("1.71", "1.71", "1.72"))
    assert first == again
    assert first != other
    assert first.startswith("number.svg sha256:")


@pytest.mark.parametrize(
    ("folder", "reference"),
    [
        (".", "../../figures/number.svg"),  # papermill, on its way to book/analysis/<lab>/
        ("book/runs/some-lab", "../../figures/number.svg"),  # nbval
        ("notebooks/lab", "../../book/figures/number.svg"),  # Jupyter, the template itself
    ],
)
def test_a_notebook_finds_its_figure(
    folder: str, reference: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECLAB_ROOT", str(tmp_path))
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(tmp_path / folder)
    kept = figures.keep(Figure(), "number", caption="One number.", alt="A number")
    assert kept._repr_markdown_() == f"![A number]({reference})\n\nOne number."
    assert (tmp_path / "book" / "figures" / "number.svg").is_file()


def in_print(styles: dict[str, ArmStyle]) -> tuple[int, int]:
    return len({style.marker for style in styles.values()}), len({to_rgb(style.colour) for style in styles.values()})


@pytest.mark.parametrize("name", lab.names())
def test_every_arm_of_a_lab_has_a_look_of_its_own(name: str) -> None:
    styles = styles_of(lab.load(name))
    assert set(styles) == set(lab.load(name).arms)
    assert in_print(styles) == (len(styles), len(styles)), "markers tell arms apart in a grey print"


def test_an_arm_that_is_added_gets_a_style_and_changes_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(paths.labs(), tmp_path / "labs")
    before = styles_of(lab.load("lab09"))
    monkeypatch.setenv("SPECLAB_ROOT", str(tmp_path))
    folder = tmp_path / "labs" / "lab09"
    added = [f"ngram-k{k}" for k in range(9, 16)]
    for arm in added:
        text = (folder / "ngram-k8.yml").read_text(encoding="utf-8")
        text = text.replace("arm: ngram-k8", f"arm: {arm}").replace("n-gram, k = 8", f"n-gram, {arm}")
        (folder / f"{arm}.yml").write_text(text, encoding="utf-8")
    settings = (folder / "lab.yml").read_text(encoding="utf-8")
    (folder / "lab.yml").write_text(settings.replace("ngram-k2]", f"ngram-k2, {', '.join(added)}]"), encoding="utf-8")
    after = styles_of(lab.load("lab09"))
    assert list(after) == [*before, *added]
    assert {arm: after[arm] for arm in before} == before
    assert in_print(after) == (len(after), len(after))
    assert after["ngram-k9"].label == "n-gram, ngram-k9"


def test_a_lab_that_gives_a_look_to_an_arm_it_lacks_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(paths.labs(), tmp_path / "labs")
    monkeypatch.setenv("SPECLAB_ROOT", str(tmp_path))
    file = tmp_path / "labs" / "lab09" / "lab.yml"
    file.write_text(file.read_text(encoding="utf-8") + "  ngram-k4: {marker: X}\n", encoding="utf-8")
    with pytest.raises(UserError, match="looks names 'ngram-k4', which is none of the arms"):
        lab.load("lab09")
