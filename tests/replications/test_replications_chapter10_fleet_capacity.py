from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speclab.replications.chapter10.fleet.capacity import HIGHEST, LoadTest, search
from speclab.replications.chapter10.fleet.fleet import AssumedSpeculation, Fleet
from speclab.replications.chapter10.fleet.metrics import ATTAINMENT_TARGET, attainment
from speclab.replications.chapter10.fleet.workload import FleetWorkload, Length

CHAT = FleetWorkload(
    name="chat", new_input=Length(mean=300, cv=1.0, most=900), output=Length(mean=80, cv=1.0, most=300), turns=2,
    think_s=0.5, ttft_slo_s=0.3, tpot_slo_s=0.012,
)  # fmt: skip
LOAD_TEST = LoadTest(Fleet(speculation=AssumedSpeculation(drafter="mtp-head-8b", k=3, alpha=0.7)), CHAT)


@given(limit=st.floats(0.02, 9e3), start=st.floats(0.5, 4.0))
def test_the_search_ends_just_below_the_limit(limit: float, start: float) -> None:
    found = search(lambda rate: rate <= limit, start)
    if found is None:
        assert limit < start / 2**6
    else:
        assert 0.9 * limit < found <= limit


def test_the_search_goes_as_the_source_s_does() -> None:
    tried = []

    def carried(rate: float) -> bool:
        tried.append(rate)
        return rate < 3.9

    assert search(carried, 3.875) == 3.875
    assert tried == [3.875, 7.75, 5.8125, 4.84375, 4.359375, 4.1171875, 3.99609375]
    assert search(lambda rate: False, 1.0) is None
    found = search(lambda rate: True, 1.0)
    assert found is not None
    assert found >= HIGHEST


@pytest.mark.parametrize("rate", [4.0, 16.0, 64.0])
def test_giving_up_changes_no_verdict(rate: float) -> None:
    kept = attainment(LOAD_TEST.run(rate), CHAT) >= ATTAINMENT_TARGET
    assert (LOAD_TEST.carried(rate) is not None) == kept
    assert kept == (rate < 64)


def test_capacity_is_the_run_at_its_rate() -> None:
    found = LOAD_TEST.capacity(8.0)
    assert found.rate is not None
    assert found.served is not None
    assert found.served.finish_s.tolist() == LOAD_TEST.run(found.rate).finish_s.tolist()
    assert attainment(found.served, CHAT) >= ATTAINMENT_TARGET
    assert found.runs >= 3
