from __future__ import annotations

import pytest

from speclab.findings.catalogue import BY_NAME, CATALOGUE, PAIRED_FIGURES, RESAMPLED
from speclab.findings.check_report import CHECKS, REMEDIES, page_rows, rest_on
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


def test_a_finding_requires_the_checks_that_bear_on_what_it_is_made_of() -> None:
    required = {name: finding.required_checks for name, finding in BY_NAME.items()}
    assert all(names and names <= set(REMEDIES) for names in required.values())
    # how fast tokens came, and which they were, are two questions
    assert "stationarity" in required["speed_up"]
    assert "stationarity" not in required["tokens_per_step"] | required["acceptance_by_position"]
    # into how many events a step was cut makes no difference to a throughput
    assert "bunched events" in required["step_time"] & required["tokens_per_step"]
    assert "bunched events" not in required["speed_up"] | required["acceptance_by_position"]
    assert "acceptance holds" in required["tokens_per_step"] & required["acceptance_by_position"]
    assert "acceptance holds" not in required["speed_up"]
    # an arm that is not what its file says has no figure at all
    assert all({"speculation", "draft length", "request errors"} <= names for names in required.values())


def test_each_check_says_what_it_compares_its_tolerance_its_remedy_and_what_rests_on_it() -> None:
    assert len(REMEDIES) == len(CHECKS) > 25
    rows = {row[0]: row for row in page_rows()}
    assert list(rows) == [entry.name for entry in CHECKS]
    assert all(all(part for part in row) for row in rows.values())
    assert [entry.name for entry in CHECKS if not rest_on(entry)] == [
        "baseline beside it", "acceptance is flat", "repeats"
    ]  # fmt: skip
    assert rest_on(next(entry for entry in CHECKS if entry.name == "request errors")) == [f.name for f in CATALOGUE]
    share = len([finding for finding in CATALOGUE if "steps" in finding.rests_on or "text" in finding.rests_on])
    assert f"{share / len(CATALOGUE):.0%} of the findings" in rows["bunched events"][-1]
