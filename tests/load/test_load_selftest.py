from __future__ import annotations

from speclab.lab import Phases
from speclab.load.selftest import carried


def test_a_client_carries_events_from_a_server_in_another_process() -> None:
    found = carried(4, Phases(length_s=1.0, drop_first_s=0.3, drop_last_s=0.1))
    assert found.concurrency == 4
    assert found.events_per_s > 100  # thousands on any machine; a rate of none, or of a few, is a broken self-test
    assert found.shortest_step_ms == 1000 * 4 / found.events_per_s
