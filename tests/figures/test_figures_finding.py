from __future__ import annotations

import pytest

from speclab import figures, results
from speclab.errors import UserError
from speclab.figures.style import styles_of


def test_any_finding_over_concurrency_is_drawn_with_its_unit() -> None:
    found = results.of("lab09", "simulated")
    figure = figures.finding_over_concurrency(found.findings, "draft_coverage", styles_of(found.lab))
    assert figure.axes[0].get_ylabel() == "steps with a draft, ratio"
    assert len(figure.axes) == len(found.lab.workloads)
    drawn = [line for line in figure.axes[0].lines if len(line.get_xdata()) == len(found.lab.concurrencies)]
    assert len(drawn) == len(found.lab.arms) - 1, "the baseline drafts nothing"


def test_what_has_no_concurrency_is_refused() -> None:
    found = results.of("lab09", "simulated")
    with pytest.raises(UserError, match="no finding over concurrency: 'crossover'; there are speed_up, "):
        figures.finding_over_concurrency(found.findings, "crossover", styles_of(found.lab))
