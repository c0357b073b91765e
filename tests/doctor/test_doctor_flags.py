from __future__ import annotations

import pytest
from doctor_cases import level, only

from speclab.doctor import flags


@pytest.mark.parametrize(("seats", "expected"), [(255, "will mislead"), (256, "fine"), (1024, "fine")])
def test_seats(case, seats, expected) -> None:
    assert level(flags.seats(case(server={"max-num-seqs": seats}))) == expected


def test_seats_that_are_not_given_are_not_known(case) -> None:
    assert level(flags.seats(case(without=("max-num-seqs",)))) == "not known here"


@pytest.mark.parametrize(
    ("tokens", "expected"), [(255, "will fail"), (256, "will mislead"), (2303, "will mislead"), (2304, "fine")]
)
def test_a_step_of_256_rows_with_8_drafts_holds_2304_tokens(case, tokens, expected) -> None:
    assert level(flags.batched_tokens(case("ngram", 8, server={"max-num-batched-tokens": tokens}))) == expected


@pytest.mark.parametrize(("k", "expected"), [(7, "fine"), (8, "not known here")])
def test_batched_tokens_that_are_not_given_are_2048_at_least(case, k, expected) -> None:
    without = ("max-num-batched-tokens",)
    assert level(flags.batched_tokens(case("ngram", k, without=without))) == expected


def test_prefix_caching_is_on_unless_it_is_turned_off(case) -> None:
    assert level(flags.prefix_caching(case())) == "fine"
    assert level(flags.prefix_caching(case(server={"enable-prefix-caching": True}))) == "will mislead"
    assert level(flags.prefix_caching(case(without=("enable-prefix-caching",)))) == "will mislead"


@pytest.mark.parametrize(
    ("method", "value", "expected"),
    [
        ("ngram", True, "not known here"),
        ("eagle3", True, "fine"),
        ("ngram", False, "fine"),
        ("ngram", None, "will mislead"),
        (None, None, "will mislead"),
    ],
)
def test_async_scheduling(case, method, value, expected) -> None:
    given = case(method, server={"async-scheduling": value}) if value is not None else None
    made = given or case(method, without=("async-scheduling",))
    assert level(flags.scheduling(made)) == expected


@pytest.mark.parametrize(
    ("version", "runner", "value", "expected"),
    [
        ("0.32.0", "1", True, "will fail"),
        ("0.33.0", "0", True, "will fail"),
        ("0.33.0", None, True, "not known here"),
        ("0.33.0", "1", True, "fine"),
        ("0.33.0", "1", None, "fine"),
        ("0.33.0", "0", None, "will mislead"),
        ("0.33.0", "1", False, "fine"),
    ],
)
def test_async_scheduling_of_n_gram_hangs_on_the_runner(case, version, runner, value, expected) -> None:
    environment = {} if runner is None else {"VLLM_USE_V2_MODEL_RUNNER": runner}
    given = {"without": ("async-scheduling",)} if value is None else {"server": {"async-scheduling": value}}
    assert level(flags.scheduling(case("ngram", vllm=version, environment=environment, **given))) == expected


def test_async_scheduling_is_off_on_a_cpu(case) -> None:
    assert level(flags.scheduling(case("ngram", without=("async-scheduling",), gpus=()))) == "fine"


def test_a_flag_of_one_arm_only_is_named_with_both_values(case) -> None:
    found = only(flags.same_flags(case("ngram", arm={"max-num-seqs": 64, "dtype": "float16"})))
    assert found.level == "will mislead"
    assert "max-num-seqs 64 against 256" in found.found
    assert "dtype float16 against not given" in found.found
    assert level(flags.same_flags(case("ngram"))) == "fine"


def test_look_up_bounds_the_wrong_way_round(case) -> None:
    made = case("ngram")
    assert level(flags.lookup(made)) == "fine"
    turned = made.arm.speculation.model_copy(update={"prompt_lookup_min": 5})
    arm = made.arm.model_copy(update={"speculation": turned})
    assert level(flags.lookup(type(made)(made.lab, arm, made.baseline, made.machine))) == "will fail"
    assert flags.lookup(case("eagle3")) == []


def test_several_steps_in_one_event(case) -> None:
    assert level(flags.streaming(case(server={"stream-interval": 4}))) == "will mislead"
    assert level(flags.streaming(case())) == "fine"


def test_flags_that_this_program_gives_itself(case) -> None:
    assert level(flags.address(case(server={"port": 8000}))) == "will fail"
    assert level(flags.address(case(can_listen=False))) == "will fail"
    assert level(flags.address(case())) == "fine"
