from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speclab.replications.chapter10.fleet.pricing import Pricing
from speclab.roofline.devices import DEVICES, device, together
from speclab.roofline.step import NO_PROMPTS, Rows, StepCost
from speclab.roofline.transformers import transformer

DRAFTERS = [None, "mtp-head-8b", "llama-3.2-1b", "eagle3-head-8b"]
COSTS = st.builds(
    lambda slug, gpus, drafter, k, floor_s, host_s, launch_s, reduces: StepCost(
        together(device(slug), gpus), transformer("llama-3-8b"), drafter and transformer(drafter), k=k,
        floor_s=floor_s, host_s=host_s, draft_overhead_s=launch_s, draft_all_reduce=reduces,
    ),
    st.sampled_from(sorted(DEVICES)), st.sampled_from([1, 2, 8]), st.sampled_from(DRAFTERS), st.integers(1, 8),
    st.sampled_from([0.0, 4e-4]), st.sampled_from([0.0, 1e-3]), st.sampled_from([0.0, 5e-4]), st.booleans(),
)  # fmt: skip


@given(cost=COSTS, count=st.integers(1, 512), context=st.integers(1, 4096), drafted=st.floats(0, 1))
def test_a_decode_pass_costs_what_step_cost_says_to_the_last_bit(
    cost: StepCost, count: int, context: int, drafted: float
) -> None:
    some = round(drafted * count)
    rows = Rows(count, count * context, some, some * context)
    price, plainly = (
        Pricing(cost).decode(rows.count, rows.context, rows.drafted, rows.drafted_context),
        cost.price(rows),
    )
    assert (price.seconds, price.drafting_s) == (plainly.seconds, plainly.drafting_s)
    assert price.energy_j == pytest.approx(plainly.energy_j + plainly.link_j, rel=1e-12)


@given(cost=COSTS, lengths=st.lists(st.integers(1, 8192), min_size=1, max_size=6))
def test_reading_prompts_costs_what_step_cost_says_to_the_last_bit(cost: StepCost, lengths: list[int]) -> None:
    prompts = NO_PROMPTS
    for length in lengths:
        prompts = prompts.plus(length)
    price, plainly = Pricing(cost).prefill(prompts.tokens, prompts.attended), cost.price(Rows(), prompts)
    assert (price.seconds, price.drafting_s) == (plainly.seconds, plainly.drafting_s)
    assert price.energy_j == pytest.approx(plainly.energy_j + plainly.link_j, rel=1e-12)


def test_the_baseline_drafts_nothing() -> None:
    cost = StepCost(device("h100-sxm"), transformer("llama-3-8b"))
    assert Pricing(cost).decode(4, 2000, 0, 0).drafting_s == 0
    assert Pricing(replace(cost, k=3)).decode(4, 2000, 0, 0).seconds == cost.seconds(Rows(4, 2000))
