from __future__ import annotations

from speclab.replications import calibrations
from speclab.replications.ask import NamedQuery, answer
from speclab.replications.lab09.replica import EAGLE
from speclab.replications.validation import figures

SOURCE = "simulated (calibrated model)"


def test_the_replica_is_drawn_with_its_band_and_the_published_points() -> None:
    figure = figures.replica_speed_up(calibrations.lab09_replica(), {EAGLE: {128.0: 1.27}}, SOURCE, draws=5)
    (axis,) = figure.axes
    assert axis.get_xlabel() == "requests in flight"
    assert len(axis.collections) == 2  # a band for each drafter
    assert [1.27] in [list(line.get_ydata()) for line in axis.lines]
    assert figure.get_supxlabel().endswith(SOURCE)


def test_predictions_have_a_panel_for_each_dataset() -> None:
    figure = figures.predicted_beside_measured(calibrations.predicted(), SOURCE)
    assert [axis.get_title(loc="left") for axis in figure.axes] == [
        "GSM8K, predicted from the other", "ShareGPT, predicted from the other",
    ]  # fmt: skip
    assert all(sum(len(line.get_xdata()) for line in axis.lines[1:]) == 11 for axis in figure.axes)


def test_cost_is_drawn_in_dollars_and_joules() -> None:
    found = answer(NamedQuery(acceptance=(0.6, 0.4, 0.3), concurrency=(1, 64)), with_errors=False)
    figure = figures.cost_of_tokens(found.costs, found.prediction.crossover.value, SOURCE)
    assert [axis.get_ylabel() for axis in figure.axes] == ["$ per million tokens", "J per million tokens"]
    assert all(len(axis.lines) == 3 for axis in figure.axes)
