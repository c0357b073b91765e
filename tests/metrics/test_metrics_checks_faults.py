"""Servers that do one thing wrong, and healthy ones: which checks of a cell see it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speclab.metrics.checks import drafts, drift
from speclab.metrics.checks.base import Check
from speclab.metrics.checks.table import verdicts
from speclab.metrics.window import cut
from stepping_rig import BASELINE, HEALTHY, Served


def checks_of(served: Served) -> dict[str, Check]:
    return {check.check: check for check in verdicts(cut(served.cell()))}


def failed(served: Served) -> set[str]:
    return {name for name, check in checks_of(served).items() if check.verdict == "FAIL"}


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_healthy_server_passes_each_check(concurrency: int) -> None:
    for served in (BASELINE, Served()):
        made = checks_of(served.at(concurrency))
        assert {name: check.verdict for name, check in made.items()} == dict.fromkeys(made, "PASS")


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    shares=st.lists(st.floats(0.05, 0.95), min_size=1, max_size=8),
    concurrency=st.sampled_from([1, 2, 8, 32]),
    step_s=st.floats(0.02, 0.1),
    answer_tokens=st.sampled_from([(6, 10), (20, 60), (60, 140), (100, 100)]),
)
def test_the_identities_hold_for_every_server_that_counts_right(
    shares: list[float], concurrency: int, step_s: float, answer_tokens: tuple[int, int]
) -> None:
    curve = tuple(sorted(shares, reverse=True))
    served = Served(k=len(curve), acceptance=curve, step_s=step_s, concurrency=concurrency, answer_tokens=answer_tokens)
    made = checks_of(served)
    identities = (
        *("answering", "bunched events", "engine steps", "usage", "counters", "speculation", "draft length"),
        *("draft positions", "drafted share", "tokens by counters", "event is a step", "preemptions"),
    )
    assert {name: made[name].verdict for name in identities} == dict.fromkeys(identities, "PASS")


@pytest.mark.parametrize("concurrency", [1, 8])
def test_f1_a_server_that_drafts_another_number_of_tokens_than_the_arm_says(concurrency: int) -> None:
    served = Served(acceptance=(0.5, 0.25, 0.1, 0.05, 0.02), step_s=0.075, concurrency=concurrency)
    made = checks_of(served)
    assert (made["draft length"].verdict, made["draft length"].value) == ("FAIL", pytest.approx(5 / 3 - 1))
    assert made["draft length"].reason == "5 tokens a draft, the arm asks for 3"
    assert made["draft positions"].verdict == "FAIL"
    assert "accepted beyond position 3" in made["draft positions"].reason
    assert failed(replace(served, k=5)) == set()


def test_f1_a_draft_of_one_token_is_not_the_arms_three_but_may_be_what_ngram_found() -> None:
    short = Served(acceptance=(0.7,))
    assert checks_of(short)["draft length"].verdict == "FAIL"
    assert checks_of(replace(short, method="ngram"))["draft length"].verdict == "PASS"
    longer = Served(acceptance=(0.7, 0.3, 0.2, 0.1), method="ngram")
    assert {"draft length", "draft positions"} <= failed(longer), "at most k, found or not"


@pytest.mark.parametrize("gauges", [True, False])
def test_f2_requests_that_stay_silent_while_no_prompt_is_read(gauges: bool) -> None:
    made = checks_of(replace(BASELINE, stuck=True, gauges=gauges))
    assert made["answering"].verdict == "FAIL"
    assert made["answering"].value == pytest.approx(0.49, abs=0.02)
    assert made["in flight"].verdict == "PASS", "the load did its part"


def test_f5a_two_steps_in_a_chunk_leave_more_drafts_than_steps() -> None:
    made = checks_of(Served(k=5, acceptance=(0.3, 0.1, 0.03, 0.01, 0.0), step_s=0.075, chunks="pair"))
    assert (made["drafted share"].verdict, made["drafted share"].value) == ("FAIL", pytest.approx(1.97, abs=0.03))
    assert (made["tokens by counters"].verdict, made["tokens by counters"].value) == (
        "FAIL",
        pytest.approx(0.55, abs=0.03),
    )


@pytest.mark.parametrize("concurrency", [1, 8])
def test_f5b_one_chunk_for_each_token_is_no_step(concurrency: int) -> None:
    served = Served(acceptance=(0.3, 0.1, 0.03), step_s=0.055, chunks="token", concurrency=concurrency)
    assert {"bunched events", "engine steps", "tokens by counters"} <= failed(served)
    # where the server counts no steps, time and the accepted tokens say it all the same
    assert {"bunched events", "tokens by counters"} <= failed(replace(served, offers_steps=False))


@pytest.mark.parametrize("factor", [0.8, 1.2])
def test_f5c_a_counter_of_accepted_tokens_that_is_wrong(factor: float) -> None:
    made = checks_of(Served(accepted_times=factor))
    assert made["tokens by counters"].verdict == "FAIL"
    assert "tokens per step by events" in made["tokens by counters"].reason
    assert "by counters" in made["tokens by counters"].reason
    assert made["draft positions"].verdict == "FAIL"
    assert made["counters"].verdict == "PASS", "the tokens themselves are all there"


@pytest.mark.parametrize("from_s", [5.5, 8.5, 11.5])
@pytest.mark.parametrize("concurrency", [1, 8])
def test_f6_acceptance_that_falls_within_the_window(concurrency: int, from_s: float) -> None:
    served = Served(
        step_s=0.026, later=(0.02, 0.0, 0.0), later_step_s=0.015, later_from_s=from_s, concurrency=concurrency
    )
    made = checks_of(served)
    assert made["acceptance holds"].verdict == "FAIL"
    assert made["acceptance holds"].value is not None
    assert made["acceptance holds"].value < -0.3
    assert checks_of(replace(served, later=HEALTHY, later_step_s=0.026))["acceptance holds"].verdict == "PASS"


def test_f6_counters_tell_it_where_every_event_holds_one_token() -> None:
    served = Served(step_s=0.026, later=(0.02, 0.0, 0.0), later_from_s=8.5, chunks="token")
    check = drift.acceptance_check(cut(served.cell()))
    assert check is not None
    assert check.verdict == "FAIL"


@pytest.mark.parametrize(("a_second", "verdict"), [(0.0, "PASS"), (1.0, "FAIL")])
def test_f13_preemptions_are_a_check(a_second: float, verdict: str) -> None:
    assert checks_of(Served(preemptions=a_second))["preemptions"].verdict == verdict


@pytest.mark.parametrize(("asked", "served"), [(64, 16), (256, 100)])
def test_g1_a_server_without_gauges_that_serves_fewer_than_are_asked(asked: int, served: int) -> None:
    capped = replace(BASELINE, concurrency=asked, at_once=served, gauges=False, counters=False, prefill_s=0.002)
    check = checks_of(capped)["answering"]
    assert check.verdict == "FAIL"
    assert check.value == pytest.approx(1 - served / asked, abs=0.05)
    assert checks_of(replace(capped, at_once=asked))["answering"].verdict == "PASS"


def test_g1_an_arm_that_never_gives_two_tokens_at_once_does_not_speculate() -> None:
    never = Served(acceptance=(), method="ngram", gauges=False, counters=False)
    check = checks_of(never)["speculation"]
    assert (check.verdict, check.value) == ("FAIL", 0.0)
    assert "holds more than one token, but the arm speculates" in check.reason
    assert checks_of(replace(never, acceptance=HEALTHY))["speculation"].verdict == "PASS"
    few = checks_of(never.at(1))["speculation"]
    assert (few.verdict, few.value) == ("WARN", None), f"fewer than {drafts.EVENTS_TO_TELL} events do not tell"


def test_prompts_that_take_all_the_time_to_read_explain_the_waiting() -> None:
    check = checks_of(replace(BASELINE, prefill_s=1.0, answer_tokens=(20, 40)))["answering"]
    assert check.verdict in ("PASS", "WARN")
    assert "prompts were read" in check.reason
