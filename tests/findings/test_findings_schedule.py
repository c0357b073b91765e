from __future__ import annotations

import pytest

from speclab.findings.policy import Choice, Switch
from speclab.findings.schedule import at, schedule
from speclab.findings.speeds import BY_ITSELF

K = {"baseline": 0, "k2": 2, "k8": 8}


def chosen(*arms: str) -> list[Choice]:
    return [Choice(float(2**index), arm, BY_ITSELF, arm, (arm,), "ok") for index, arm in enumerate(arms)]


def test_it_drafts_less_from_the_lower_end_of_each_gap() -> None:
    changes = [Switch("k8", "k2", 40.0, 33, 47, "ok"), Switch("k2", "baseline", 161.3, 148, 174, "ok")]
    ranges = schedule(chosen("k8", "k2", "baseline"), changes, K, 256)
    assert ranges == [(1, 32, 8), (33, 147, 2), (148, 256, 0)]
    assert [at(ranges, size) for size in (1, 32, 33, 147, 148, 256, 300)] == [8, 8, 2, 2, 0, 0, 0]


def test_it_drafts_more_from_the_upper_end() -> None:
    ranges = schedule(chosen("baseline", "k2"), [Switch("baseline", "k2", 9.0, 6, 12, "ok")], K, 16)
    assert ranges == [(1, 12, 0), (13, 16, 2)]


def test_one_choice_is_one_range() -> None:
    assert schedule(chosen("k2", "k2"), [], K, 16) == [(1, 16, 2)]


def test_a_gap_beyond_the_largest_batch_is_never_reached() -> None:
    assert schedule(chosen("k2", "baseline"), [Switch("k2", "baseline", 20.0, 18, 22, "ok")], K, 16) == [(1, 16, 2)]


def test_gaps_that_overlap_leave_no_empty_range() -> None:
    changes = [Switch("k8", "k2", 3.0, 3, 5, "ok"), Switch("k2", "baseline", 4.0, 2, 6, "ok")]
    assert schedule(chosen("k8", "k2", "baseline"), changes, K, 16) == [(1, 2, 8), (3, 16, 0)]


def test_nothing_known_is_no_schedule() -> None:
    with pytest.raises(ValueError, match="at least one choice"):
        schedule([], [], K, 16)
