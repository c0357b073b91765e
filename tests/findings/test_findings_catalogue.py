from __future__ import annotations

import pytest

from speclab.findings.catalogue import BY_NAME, CATALOGUE, COUNTER_CHECKS, EVENT_CHECKS, PAIRED_FIGURES, RESAMPLED
from speclab.findings.check_report import REMEDIES
from speclab.metrics.blocks import COLUMNS
from speclab.metrics.summary import METRICS


def test_a_name_is_one_finding() -> None:
    assert len(BY_NAME) == len(CATALOGUE) > 30
    assert all(finding.unit and finding.words for finding in CATALOGUE)


def test_a_finding_of_a_cell_is_a_metric_or_a_product_of_two() -> None:
    of_cells = [finding for finding in CATALOGUE if finding.of == "cell"]
    assert {finding.name for finding in of_cells if finding.times is None} <= set(METRICS)
    assert {name for finding in of_cells for name in finding.times or ()} <= set(METRICS)


def test_a_finding_of_a_pair_is_a_ratio_or_a_difference_of_what_can_be_resampled() -> None:
    pairs = [finding for finding in CATALOGUE if finding.of == "pair"]
    assert all((finding.over is None) != (finding.less is None) for finding in pairs)
    assert {name for finding in pairs for name in finding.over or finding.less or ()} <= set(RESAMPLED)
    # a difference is resampled as the ratio of the same two
    assert {finding.less for finding in pairs if finding.less} <= {finding.over for finding in pairs}
    assert PAIRED_FIGURES == ["step_time", "system_throughput", "time_per_output_token", "user_throughput"]


@pytest.mark.parametrize("name", RESAMPLED)
def test_sums_are_columns_of_the_blocks_and_a_unit_of_one_for_each(name: str) -> None:
    sums = RESAMPLED[name].sums
    assert set(sums) <= {*COLUMNS, "drafted_tokens"}
    assert sum(sums.values()) == 0


def test_required_checks_are_checks() -> None:
    assert set(REMEDIES) > COUNTER_CHECKS | EVENT_CHECKS
    assert BY_NAME["speed_up"].required_checks is None
    assert "stationarity" not in COUNTER_CHECKS | EVENT_CHECKS
