from __future__ import annotations

from typing import Any

import pytest
from doctor_cases import level, only
from hypothesis import given
from hypothesis import strategies as st

from speclab.doctor import graphs
from speclab.doctor.graphs import Graphs, own_sizes, rounded
from speclab.lab import Speculation

SIZES, LARGEST = graphs.SIZES, graphs.LARGEST
TO_40 = [1, 2, 4, 8, 16, 24, 32, 40]

FORMS: list[dict[str, Any]] = [
    {LARGEST: 42},
    {"max_cudagraph_capture_size": "42"},
    {"compilation-config": {"max_cudagraph_capture_size": 42}},
    {"compilation-config": '{"max_cudagraph_capture_size": 42}'},
    {"compilation_config.max_cudagraph_capture_size": 42},
    {"cc.max_cudagraph_capture_size=42": True},
    {SIZES: TO_40},
    {"compilation-config": {"cudagraph_capture_sizes": TO_40}},
    {"compilation-config": f'{{"cudagraph_capture_sizes": {TO_40}}}'},
    {"-cc.cudagraph_capture_sizes": TO_40},
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: str(form)[:50])
def test_f9_six_rows_with_six_drafts_find_no_graph_of_42_in_a_list_that_ends_at_40(case, form) -> None:
    # vllm#54933: [1, 2, 4, 8, 16, 24, 32, 40], 42 is rounded up from 40 and then dropped
    server = {"max-num-seqs": 6} | form
    without = () if SIZES in form else (SIZES,)
    found = only(graphs.graphs(case("eagle3", 6, server=server, without=without, concurrencies=(1, 2, 6))))
    assert found.level == "will mislead"
    assert "no graph for steps of 6 x 7 = 42 tokens: the list ends at 40 tokens" in found.found
    assert "42" in found.remedy
    assert "vllm#54933" in found.cites


def test_f9_without_a_flag_vllm_adds_the_sizes_of_whole_steps(case) -> None:
    made = case("eagle3", 6, server={"max-num-seqs": 6}, without=(SIZES,), concurrencies=(1, 2, 6))
    assert level(graphs.graphs(made)) == "fine"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        # vllm#54933 and #55004, by hand: an explicit largest leaves the sizes of whole steps out
        ((6, [6] * 6, 8192, 42), TO_40),
        # 6 seats of 7: ends at 84, with 7, 14, 28 and 42 for 1, 2, 4 and 6 requests
        ((6, [6] * 6, 8192, None), [1, 2, 4, 7, 8, 14, 16, 24, 28, 32, 40, 42, 48, 56, 64, 72, 80]),
        # the baseline: 2 x 6 tokens, and its seats
        ((6, [0] * 6, 8192, None), [1, 2, 4, 6, 8]),
        # a schedule has whole steps of each k up to the last batch that runs with it
        ((4, [2, 2, 0, 0], 8192, None), [1, 2, 3, 4, 6, 8, 16, 24]),
        ((6, [6] * 6, 30, None), [1, 2, 4, 7, 8, 14, 16, 24, 28, 30]),
    ],
)
def test_vllms_own_list(arguments: tuple[Any, ...], expected: list[int]) -> None:
    assert own_sizes(*arguments) == expected


def test_without_flags_a_list_of_256_seats_ends_at_512() -> None:
    sizes = own_sizes(256, [3] * 256, 8192, None)
    assert sizes[-1] == 512
    assert {4, 8, 16, 32, 64, 480, 496} <= set(sizes)


def test_runner_v1_rounds_its_one_list_and_v2_keeps_it_for_mixed_steps() -> None:
    listed = (1, 4, 16, 64, 256, 1024)
    v2, v1 = (Graphs(listed, 256, (2,) * 256, on_v2=on_v2) for on_v2 in (True, False))
    # multiples of 3: 3, 6, 18, 66, 258; 1026 passes 1024
    assert [v2.runs_as(n) for n in (1, 4, 16, 64, 256)] == [3, 18, 66, 258, 1024]
    assert [v1.runs_as(n) for n in (1, 4, 16, 64, 256)] == [3, 18, 66, 258, None]


@pytest.mark.parametrize(
    ("mode", "expected"), [("NONE", None), ("PIECEWISE", 16), ("FULL", 16), ("FULL_DECODE_ONLY", None)]
)
def test_graphs_of_other_modes(mode: str, expected: int | None) -> None:
    # 4 requests of 3 tokens: whole steps are 3 and 6, and 18 passes 16
    assert Graphs((1, 4, 16), 256, (2,) * 256, mode).runs_as(4) == expected


def test_a_schedule_has_graphs_of_each_k() -> None:
    made = Graphs(tuple(own_sizes(4, [2, 2, 0, 0], 8192, None)), 4, (2, 2, 0, 0))
    assert [made.runs_as(n) for n in (1, 2, 3, 4)] == [3, 6, 3, 4]


def test_padding_beside_a_baseline_that_has_none_misleads(case) -> None:
    found = only(graphs.graphs(case("draft_model", 2)))
    assert found.level == "will mislead"
    assert "4 x 3 = 12 as 18, 16 x 3 = 48 as 66, 64 x 3 = 192 as 258, 256 x 3 = 768 as 1024" in found.found


@pytest.mark.parametrize(("k", "method"), [(0, None), (3, "draft_model")])
def test_a_list_that_holds_whole_steps_is_fine(case, k, method) -> None:
    assert level(graphs.graphs(case(method, k or 1))) == "fine"


def test_vllms_own_list_ends_at_512_tokens(case) -> None:
    found = only(graphs.graphs(case("draft_model", 3, without=(SIZES,))))
    assert found.level == "will mislead"
    assert "256 x 4 = 1024" in found.found  # 64 x 4 = 256 is inside
    assert "64 x 4" not in found.found
    assert level(graphs.graphs(case("draft_model", 3, without=(SIZES,), concurrencies=(1, 4)))) == "fine"
    assert level(graphs.graphs(case("draft_model", 3, without=(SIZES,), vllm="0.31.0"))) == "not known here"


def test_sizes_above_the_batched_tokens_are_not_captured(case) -> None:
    found = only(graphs.graphs(case("draft_model", 3, server={"max-num-batched-tokens": 512})))
    assert (found.level, "256 x 4 = 1024" in found.found) == ("will mislead", True)


def test_sizes_may_stand_in_the_compilation_config_but_not_twice(case) -> None:
    inner = {"compilation-config": {"cudagraph_capture_sizes": [4, 16, 64, 256, 1024]}}
    assert level(graphs.graphs(case("draft_model", 3, server=inner))) == "will fail"
    assert level(graphs.graphs(case("draft_model", 3, server=inner, without=(SIZES,)))) == "fine"


def test_a_largest_size_that_is_not_the_lists_own_is_refused(case) -> None:
    assert level(graphs.graphs(case(server={LARGEST: 512}))) == "will fail"
    assert level(graphs.graphs(case(server={LARGEST: 1024}))) == "fine"


@pytest.mark.parametrize(
    "changed",
    [
        {"server": {"enforce-eager": True}},
        {"server": {"O0": True}},
        {"server": {"cc.cudagraph_mode": "none"}},
        {"vllm_build": "cpu", "gpus": ()},
    ],
)
def test_without_graphs_there_is_nothing_to_cover(case, changed) -> None:
    assert level(graphs.graphs(case("draft_model", 2, **changed))) == "fine"


def test_f12_a_schedules_step_is_as_wide_as_its_k_there(case) -> None:
    made = case("ngram", 8, server={"max-num-seqs": 16}, without=(SIZES,), concurrencies=(1, 4, 16))
    ranges = {"num_speculative_tokens_per_batch_size": [[1, 4, 8], [5, 16, 0]]}
    speculation = Speculation.model_validate(made.arm.speculation.model_dump() | ranges)
    arm = made.arm.model_copy(update={"speculation": speculation})
    assert level(graphs.graphs(type(made)(made.lab, arm, made.baseline, made.machine))) == "fine"


@given(st.sets(st.integers(1, 600), min_size=1), st.integers(1, 9), st.integers(1, 64))
def test_a_step_is_never_replayed_from_a_smaller_graph(sizes: set[int], k: int, rows: int) -> None:
    made = Graphs(tuple(sorted(sizes)), 64, (k,) * 64)
    run = made.runs_as(rows)
    assert run is None or rows * (k + 1) <= run <= max(sizes)
    assert all(size % (k + 1) == 0 for size in rounded(sizes, k + 1, max(sizes)))
