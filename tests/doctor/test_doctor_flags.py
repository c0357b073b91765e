from __future__ import annotations

import pytest
from doctor_cases import level, only

from speclab.doctor import flags


@pytest.mark.parametrize(
    ("k", "expected", "words"),
    [
        (0, "fine", "n x 1"),
        (3, "fine", "n x 4 for each n, up to 1024 tokens"),
        # 1, 4, 16, 64, 256 requests at 3 tokens each: 3, 12, 48, 192, 768, none of which is a power of two
        (2, "will mislead", "1 x 3 = 3, 4 x 3 = 12, 16 x 3 = 48, 64 x 3 = 192, 256 x 3 = 768"),
    ],
)
def test_graphs_are_captured_for_every_swept_step(case, k, expected, words) -> None:
    found = only(flags.graphs(case("draft_model" if k else None, k or 1)))
    assert found.level == expected
    assert words in found.found
    assert "vllm#50488" in found.cites


def test_vllms_own_list_of_graphs_ends_at_512_tokens(case) -> None:
    found = only(flags.graphs(case("draft_model", 3, without=("cudagraph-capture-sizes",))))
    assert found.level == "will mislead"
    assert "1024 (256 in flight)" in found.found  # 64 x 4 = 256 is inside
    assert "(64 in flight)" not in found.found
    small = case("draft_model", 3, without=("cudagraph-capture-sizes",), concurrencies=(1, 4))
    assert level(flags.graphs(small)) == "not known here"


def test_sizes_above_the_batched_tokens_are_not_captured(case) -> None:
    found = only(flags.graphs(case("draft_model", 3, server={"max-num-batched-tokens": 512})))
    assert (found.level, "256 x 4 = 1024" in found.found) == ("will mislead", True)


def test_sizes_may_stand_in_the_compilation_config_but_not_twice(case) -> None:
    inner = {"compilation-config": {"cudagraph_capture_sizes": [4, 16, 64, 256, 1024]}}
    assert level(flags.graphs(case("draft_model", 3, server=inner))) == "will fail"
    alone = case("draft_model", 3, server=inner, without=("cudagraph-capture-sizes",))
    assert level(flags.graphs(alone)) == "fine"


def test_a_largest_size_that_is_not_the_lists_own_is_refused(case) -> None:
    assert level(flags.graphs(case(server={"max-cudagraph-capture-size": 512}))) == "will fail"
    assert level(flags.graphs(case(server={"max-cudagraph-capture-size": 1024}))) == "fine"


@pytest.mark.parametrize("changed", [{"server": {"enforce-eager": True}}, {"vllm_build": "cpu", "gpus": ()}])
def test_without_graphs_there_is_nothing_to_cover(case, changed) -> None:
    assert level(flags.graphs(case("draft_model", 2, **changed))) == "fine"


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
