from __future__ import annotations

import itertools
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from speclab.errors import UserError
from speclab.lab import Phases
from speclab.load import fidelity, selftest
from speclab.load.fidelity import Trial
from speclab.load.selftest import CleanRate, search


def a_trial(streams: int, **given: float) -> Trial:
    figures = {"p50_ms": 10.0, "p99_ms": 10.2, "mean_ms": 10.0, "lost": 0, "stub_p99_ms": 10.1, "seen_per_s": 1.0}
    return Trial.model_validate({"streams": streams, "gap_ms": 10.0, **figures, **given})


def test_g2_clean_is_p99_within_a_tenth_mean_within_half_a_percent_and_nothing_lost() -> None:
    assert a_trial(4, p99_ms=10.99, mean_ms=10.049).is_clean
    assert not a_trial(4, p99_ms=11.01).is_clean
    assert not a_trial(4, p99_ms=8.9).is_clean
    assert not a_trial(4, mean_ms=10.06).is_clean
    assert not a_trial(4, lost=1).is_clean
    assert a_trial(256).rate_per_s == 25_600


def test_g2_the_search_rises_to_the_first_load_that_is_not_clean_and_halves() -> None:
    found = search(lambda streams: a_trial(streams, p99_ms=10.5 if streams <= 100 else 20.0))
    assert [made.streams for made in found.tried] == [4, 16, 64, 256, 256, 128, 128, 91]
    assert found.clean_rate_per_s == 9_100


def test_g2_a_load_is_tried_again_before_it_counts_as_not_clean() -> None:
    turns = iter([a_trial(4, p99_ms=30.0), a_trial(4)])
    found = search(lambda streams: next(turns, a_trial(streams, lost=9)))
    assert [made.is_clean for made in found.tried[:2]] == [False, True]
    assert found.clean_rate_per_s == 400


def test_g2_where_all_is_clean_the_highest_load_is_the_rate() -> None:
    assert search(a_trial).clean_rate_per_s == 100 * max(selftest.STREAMS)


def test_g2_a_slow_client_and_a_busy_machine_are_told_apart() -> None:
    assert search(lambda streams: a_trial(streams, p99_ms=30.0)).clean_rate_per_s == 0
    assert search(lambda streams: a_trial(streams, p99_ms=30.0, stub_p99_ms=25.0)).clean_rate_per_s is None


def test_gaps_are_those_within_a_request() -> None:
    times = [np.array([0.0, 0.01, 0.03]), np.array([0.5]), np.array([])]
    assert fidelity.gaps(times) == pytest.approx([10.0, 20.0])
    assert len(fidelity.gaps([])) == 0


def test_g2_a_trial_against_a_stub_in_another_process_counts_all_that_was_sent() -> None:
    cores = os.sched_getaffinity(0)
    with fidelity.stub(fidelity.script_of(50.0)) as url:
        seen = fidelity.trial(url, 4, 50.0, Phases(length_s=1.6, drop_first_s=0.4, drop_last_s=0.2))
        sent = fidelity.sent_by(url, 0.0, 1e12)
    assert os.sched_getaffinity(0) == cores, "given back"
    assert (seen.streams, seen.gap_ms, seen.rate_per_s) == (4, 50.0, 80.0)
    # a step each 50 ms for 1.6 s, four events in each; none may be lost at 80 a second however busy the machine is
    assert 4 * 20 <= sent.events <= 4 * 34
    assert seen.lost == 0
    assert 0 < seen.p50_ms <= seen.p99_ms


def test_a_stub_that_does_not_start_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", shutil.which("true"))
    with pytest.raises(UserError, match="did not start"), fidelity.stub(fidelity.script_of(10.0)):
        raise AssertionError("started")


def test_what_was_measured_is_kept_for_the_next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECLAB_ROOT", str(tmp_path))
    rates = iter([None, 400.0, 1600.0])

    def measured() -> CleanRate:
        return CleanRate(clean_rate_per_s=next(rates), tried=())

    kept = selftest.kept_clean_rate.__wrapped__
    assert kept(measured) is None, "a machine that is too busy: nothing is kept"
    assert [kept(measured), kept(measured)] == [400.0, 400.0]
    assert selftest.keep_clean_rate(measured).clean_rate_per_s == 1600.0
    assert kept(measured) == 1600.0


def test_g2_the_search_ends_after_a_few_trials_however_disturbed() -> None:
    turns = itertools.count()
    found = search(lambda streams: a_trial(streams, p99_ms=10.5 if next(turns) % 2 and streams <= 64 else 20.0))
    assert [made.streams for made in found.tried] == [4, 4, 16, 16, 64, 64, 256, 256]
    assert found.clean_rate_per_s == 6_400


def test_the_json_holds_the_rate_and_each_trial() -> None:
    told = json.loads(search(lambda streams: a_trial(streams, lost=streams // 64)).model_dump_json())
    assert told["clean_rate_per_s"] == 4_500
    rows = [(row["streams"], row["rate_per_s"], row["is_clean"]) for row in told["tried"]]
    assert rows[:3] == [(4, 400.0, True), (16, 1600.0, True), (64, 6400.0, False)]
