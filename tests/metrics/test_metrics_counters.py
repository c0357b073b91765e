from __future__ import annotations

from speclab.engines.base import Reading
from speclab.metrics.counters import gained


def test_g10_a_first_reading_that_failed_does_not_count_from_the_servers_start(make_cell):
    readings = [
        Reading(at_s=1.0),
        Reading(at_s=2.0, generation_tokens=1_000_000, drafts=400_000, accepted_by_position=(300_000,)),
        Reading(at_s=9.0, generation_tokens=1_000_700, drafts=400_100, accepted_by_position=(300_060,)),
    ]
    gain = gained(make_cell([], readings=readings).record)
    assert gain is not None
    assert (gain.from_s, gain.to_s) == (2.0, 9.0)
    assert (gain.generation_tokens, gain.drafts, gain.accepted_by_position) == (700, 100, (60,))


def test_g10_a_page_that_vanishes_counts_to_where_it_was_last_seen(make_cell):
    readings = [Reading(at_s=1.0, drafts=10), Reading(at_s=2.0, drafts=30), Reading(at_s=3.0, running=4)]
    gain = gained(make_cell([], readings=readings).record)
    assert gain is not None
    assert (gain.to_s, gain.drafts) == (2.0, 20)


def test_g10_one_reading_is_no_gain(make_cell):
    assert gained(make_cell([], readings=[Reading(at_s=1.0), Reading(at_s=2.0, drafts=30)]).record) is None


def test_a_counter_that_appears_with_its_first_event_began_at_0(make_cell):
    readings = [Reading(at_s=1.0, generation_tokens=5), Reading(at_s=2.0, generation_tokens=9, drafts=3)]
    gain = gained(make_cell([], readings=readings).record)
    assert gain is not None
    assert (gain.generation_tokens, gain.drafts) == (4, 3)
