from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speclab.engines.base import Reading
from speclab.engines.counters import reading

# two engines of a data-parallel server, k = 3; names and labels as vLLM prints them
PAGE = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 2.0
vllm:num_requests_waiting{engine="0",model_name="m"} 0.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 9.0
# TYPE vllm:iteration_tokens_total histogram
vllm:iteration_tokens_total_bucket{engine="0",le="1.0",model_name="m"} 100.0
vllm:iteration_tokens_total_count{engine="0",model_name="m"} 472.0
vllm:iteration_tokens_total_sum{engine="0",model_name="m"} 9999.0
# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 119.0
vllm:spec_decode_num_drafts_total{engine="1",model_name="m"} 1.0
vllm:spec_decode_num_drafts_created{engine="0",model_name="m"} 1.7626e+09
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} 70.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="1"} 40.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="2"} 10.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="1",model_name="m",position="0"} 1.0
vllm:spec_decode_num_accepted_tokens_per_pos_created{engine="0",model_name="m",position="0"} 1.7626e+09
python_gc_objects_collected_total{generation="0"} 12345.0
"""


def test_sums_over_engines_and_takes_only_exact_names() -> None:
    assert reading(PAGE, at_s=4.5) == Reading(
        at_s=4.5, running=5, waiting=0, steps=472, drafts=120, accepted_by_position=(71, 40, 10)
    )


def test_what_is_not_offered_is_none_and_zero_is_zero() -> None:
    found = reading('vllm:spec_decode_num_drafts_total{engine="0"} 0.0\n', at_s=0)
    assert found.drafts == 0
    assert found.accepted_tokens is None
    assert found.accepted_by_position is None


def test_a_page_of_another_program_offers_nothing() -> None:
    assert reading("<html>{not metrics}</html>\n\n{", at_s=1) == Reading(at_s=1)


def test_positions_end_at_the_first_gap() -> None:
    name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
    page = f'{name}{{position="0"}} 5.0\n{name}{{position="2"}} 1.0\n'
    assert reading(page, at_s=0).accepted_by_position == (5,)


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=8))
def test_the_sum_does_not_depend_on_how_the_counts_lie_over_engines(counts: list[int]) -> None:
    name = "vllm:generation_tokens_total"
    spread = "".join(f'{name}{{engine="{engine}"}} {float(count)}\n' for engine, count in enumerate(counts))
    whole = f'{name}{{engine="0"}} {float(sum(counts))}\n'
    assert reading(spread, at_s=0) == reading(whole, at_s=0)


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf"])
def test_what_is_no_count_is_not_offered(value: str) -> None:
    name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
    page = f'vllm:generation_tokens_total {value}\n{name}{{position="0"}} {value}\nvllm:num_requests_running 1.0\n'
    assert reading(page, at_s=0) == Reading(at_s=0, running=1)


def test_a_position_without_its_number_is_a_line_that_does_not_parse() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        reading("vllm:spec_decode_num_accepted_tokens_per_pos_total 5.0\n", at_s=0)
