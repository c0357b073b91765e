from __future__ import annotations

import pytest

from speclab.engines.base import Reading
from speclab.metrics.checks import counted, deliveries, drafts, load, pace
from speclab.metrics.checks.table import OF_A_CELL, verdicts
from speclab.metrics.window import cut
from speclab.record.schema import ClientLag


@pytest.fixture
def steady(request_row):
    """Twelve answers of one slot, one after the other: 1 s and 50 tokens each."""
    return [
        request_row(float(start), [(start + 0.02 * step, 1) for step in range(50)], end_s=start + 0.999)
        for start in range(12)
    ]


def _readings(**last):
    """Eleven readings, a second apart, counters rising linearly from 0 to `last`; gauges as given."""
    gauges = {name: last.pop(name) for name in ("running",) if name in last}
    return [
        Reading(at_s=1.0 + second, **gauges, **{name: value * second / 10 for name, value in last.items()})
        for second in range(11)
    ]


OF_DRAFTS = {"draft length", "draft positions", "drafted share", "tokens by counters", "acceptance holds"}


def test_a_sound_cell_passes_everything(steady, make_cell):
    readings = _readings(
        running=1, generation_tokens=500, steps=510, preemptions=0, prefix_cache_queries=500, prefix_cache_hits=0
    )
    lag = ClientLag(mean_ms=0.1, p99_ms=1.0, max_ms=5.0)
    window = {"window_s": (1.0, 11.0), "readings": readings, "client_lag": lag, "client_clean_rate_per_s": 400.0}
    made = verdicts(cut(make_cell(steady, engine="vllm", **window)))
    assert {check.check: check.verdict for check in made} == dict.fromkeys([c.check for c in made], "PASS")
    assert [check.check for check in made] == [entry.name for entry in OF_A_CELL if entry.name not in OF_DRAFTS]


def test_what_the_server_does_not_offer_is_a_warning(steady, make_cell):
    view = cut(make_cell(steady, window_s=(1.0, 11.0), readings=[Reading(at_s=1.0), Reading(at_s=11.0)]))
    for check in (
        load.running_check(view),
        counted.counters_check(view),
        counted.counter_reset_check(view),
        load.prefix_cache_check(view),
    ):
        assert (check.verdict, check.value) == ("WARN", None)
        assert check.reason.startswith("not offered")


def test_occupancy_fails_where_tokens_are_missing(steady, request_row, make_cell):
    # every answer's usage says 50 tokens, half of which never came as events
    for row in steady:
        row["event_us"], row["event_tokens"] = row["event_us"][::2], row["event_tokens"][::2]
    view = cut(make_cell(steady, window_s=(1.0, 11.0)))
    assert pace.occupancy_check(view).verdict == "FAIL"
    assert pace.occupancy_check(view).value == pytest.approx(-0.5, abs=0.03)
    assert deliveries.usage_check(view).verdict == "FAIL"
    assert deliveries.usage_check(view).value == pytest.approx(0.5)
    few = cut(make_cell(steady[:6], window_s=(1.0, 6.0)))
    assert pace.occupancy_check(few).verdict == "WARN"
    assert "too few to tell" in pace.occupancy_check(few).reason


@pytest.mark.parametrize(("running", "verdict"), [(16, "PASS"), (15, "WARN"), (8, "FAIL")])
def test_a_server_that_never_runs_all_makes_the_label_untrue(steady, make_cell, running, verdict):
    view = cut(make_cell(steady, concurrency=16, readings=_readings(running=running)))
    assert load.running_check(view).verdict == verdict
    assert load.running_check(view).value == pytest.approx(running / 16)


def test_a_server_that_queues_makes_the_label_untrue(steady, make_cell):
    # all 16 fit now and then, but 4 wait in the mean: room in the cache runs out
    readings = [Reading(at_s=1.0 + second, running=16 - wait, waiting=wait) for second, wait in enumerate([0, 8] * 5)]
    found = load.running_check(cut(make_cell(steady, concurrency=16, readings=readings)))
    assert (found.verdict, found.value) == ("FAIL", pytest.approx(12 / 16))
    assert found.reason == "16 of 16 running, 4 waiting in the mean, 10 readings"


def test_the_moment_between_two_answers_is_no_queue(steady, make_cell):
    # half of the readings fall between an answer's end and the step that takes the next one in; nothing waits
    readings = [Reading(at_s=1.0 + second, running=run, waiting=0) for second, run in enumerate([16, 13] * 5)]
    assert load.running_check(cut(make_cell(steady, concurrency=16, readings=readings))).verdict == "PASS"


def test_slots_that_stand_empty(steady, make_cell):
    view = cut(make_cell(steady, window_s=(1.0, 11.0), concurrency=2))
    assert load.in_flight_check(view).verdict == "FAIL"
    assert load.in_flight_check(view).value == pytest.approx(0.4995)


def test_drift_is_seen(request_row, make_cell):
    # 50 tokens a second, 40 from the middle on
    times = [0.02 * step for step in range(250)] + [5 + 0.025 * step for step in range(200)]
    view = cut(make_cell([request_row(0.0, [(at, 1) for at in times])], window_s=(0.0, 10.0)))
    check = pace.stationarity_check(view)
    assert check.value == pytest.approx(-0.2)
    assert check.verdict == "FAIL"


def test_scatter_is_not_taken_for_drift(request_row, make_cell):
    # slices of 20 and 60 tokens in turn; the halves differ by 15% because there are three large ones in the first
    times = [
        second + step / tokens
        for second, tokens in enumerate((60, 20, 60, 20, 60, 20, 60, 20, 60, 20))
        for step in range(tokens)
    ]
    view = cut(make_cell([request_row(0.0, [(at, 1) for at in times])], window_s=(0.0, 10.0)))
    check = pace.stationarity_check(view)
    assert check.value == pytest.approx(180 / 220 - 1)
    assert check.verdict == "PASS"


@pytest.mark.parametrize(("p99_ms", "verdict"), [(5.0, "PASS"), (10.0, "WARN"), (30.0, "FAIL")])
def test_client_lag_is_held_against_a_step(steady, make_cell, p99_ms, verdict):
    view = cut(make_cell(steady, client_lag=ClientLag(mean_ms=1, p99_ms=p99_ms, max_ms=40)))
    assert pace.client_lag_check(view).value == pytest.approx(p99_ms / 20)
    assert pace.client_lag_check(view).verdict == verdict


@pytest.mark.parametrize(
    ("clean", "verdict", "share"),
    [(None, "WARN", None), (100.0, "PASS", 0.5), (40.0, "FAIL", 1.25), (0.0, "FAIL", None)],
)
def test_g2_a_cell_beyond_the_clients_clean_rate_shows_the_client(steady, make_cell, clean, verdict, share):
    # an event each 20 ms is 50 a second
    check = pace.client_rate_check(cut(make_cell(steady, engine="vllm", client_clean_rate_per_s=clean)))
    assert (check.verdict, check.value) == (verdict, share if share is None else pytest.approx(share, rel=0.01))
    assert ("your client, not your GPU" in check.reason) == (verdict == "FAIL")
    assert pace.client_rate_check(cut(make_cell(steady))).verdict == "PASS", "simulated time waits"


def test_an_event_with_more_than_a_step_can_give(request_row, make_cell):
    row = request_row(0.0, [(0.1, 1), *[(0.1 * step, 4) for step in range(2, 12)]])
    assert deliveries.event_is_step_check(cut(make_cell([row], k=3))).verdict == "PASS"
    assert deliveries.event_is_step_check(cut(make_cell([row], k=2))).value == 1.0
    assert deliveries.event_is_step_check(cut(make_cell([row]))).verdict == "FAIL"


@pytest.mark.parametrize(("of_server", "verdict"), [(505, "PASS"), (515, "WARN"), (600, "FAIL")])
def test_counter_residual(steady, make_cell, of_server, verdict):
    view = cut(make_cell(steady, window_s=(1.0, 11.0), readings=_readings(generation_tokens=of_server)))
    assert counted.counter_residual(view) == pytest.approx(1 - 500 / of_server)
    assert counted.counters_check(view).verdict == verdict


def test_a_reset_is_seen_even_where_the_borders_rise(steady, make_cell):
    readings = [Reading(at_s=at, generation_tokens=tokens) for at, tokens in ((0, 10), (5, 3), (10, 500))]
    check = counted.counter_reset_check(cut(make_cell(steady, readings=readings)))
    assert check.verdict == "FAIL"
    assert "generation_tokens" in check.reason


@pytest.mark.parametrize(
    ("k", "counted", "verdict", "value", "reason"),
    [
        (3, {"drafts": 1}, "PASS", 1, "1 drafts"),  # n-gram may draft rarely in a real text
        (3, {"drafts": 0}, "FAIL", 0, "nothing was drafted, but the arm speculates"),
        (3, {}, "FAIL", 0, "nothing was drafted, but the arm speculates"),  # vLLM shows drafts where it speculates
        (0, {"drafts": 40}, "FAIL", 40, "40 drafts, but the arm does not"),
        (0, {"drafts": 0}, "PASS", 0, "nothing was drafted"),
        (0, {}, "PASS", 0, "nothing was drafted"),
    ],
)
def test_an_arm_drafts_where_its_name_says_so_and_only_there(steady, make_cell, k, counted, verdict, value, reason):
    check = drafts.speculation_check(cut(make_cell(steady, k=k, readings=_readings(generation_tokens=500, **counted))))
    assert (check.verdict, check.value, check.reason) == (verdict, value, reason)


@pytest.mark.parametrize("k", [0, 3])
def test_drafts_that_no_counter_tells_are_a_warning(steady, make_cell, k):
    bare = drafts.speculation_check(cut(make_cell(steady, k=k, readings=_readings(running=1))))
    assert (bare.verdict, bare.value, bare.reason) == (
        "WARN",
        None,
        "not offered: the server gives no counter of drafts",
    )
    fell = [Reading(at_s=at, drafts=drafts, generation_tokens=9) for at, drafts in ((0, 10), (5, 0), (10, 50))]
    assert drafts.speculation_check(cut(make_cell(steady, k=k, readings=fell))).verdict == "WARN"


def test_request_errors(steady, make_cell):
    assert load.request_errors_check(cut(make_cell(steady))).verdict == "PASS"
    steady[3]["error"] = "HTTP 400"
    check = load.request_errors_check(cut(make_cell(steady)))
    assert (check.verdict, check.value) == ("FAIL", pytest.approx(1 / 12))
    assert "HTTP 400" in check.reason


@pytest.mark.parametrize(("flag", "verdict"), [(False, "FAIL"), (True, "WARN")])
def test_prefix_hits_fail_unless_asked_for(steady, make_cell, flag, verdict):
    readings = _readings(generation_tokens=500, prefix_cache_queries=1000, prefix_cache_hits=300)
    view = cut(make_cell(steady, readings=readings, server={"enable-prefix-caching": flag}))
    assert load.prefix_cache_check(view).value == pytest.approx(0.3)
    assert load.prefix_cache_check(view).verdict == verdict
