from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speclab.replications.chapter10.fleet.step_time import PrecomputedSteps
from speclab.roofline.devices import DEVICES, device, together
from speclab.roofline.step import NO_PROMPTS, Rows, StepModel
from speclab.roofline.transformers import transformer

DRAFTERS = [None, "mtp-head-8b", "llama-3.2-1b", "eagle3-head-8b"]
MODELS = st.builds(
    lambda slug, gpus, drafter, k, floor_s, host_s, launch_s, reduces: StepModel(
        together(device(slug), gpus), transformer("llama-3-8b"), drafter and transformer(drafter), k=k,
        floor_s=floor_s, host_s=host_s, draft_overhead_s=launch_s, draft_all_reduce=reduces,
    ),
    st.sampled_from(sorted(DEVICES)), st.sampled_from([1, 2, 8]), st.sampled_from(DRAFTERS), st.integers(1, 8),
    st.sampled_from([0.0, 4e-4]), st.sampled_from([0.0, 1e-3]), st.sampled_from([0.0, 5e-4]), st.booleans(),
)  # fmt: skip


@given(model=MODELS, count=st.integers(1, 512), context=st.integers(1, 4096), drafted=st.floats(0, 1))
def test_a_decode_pass_takes_what_the_step_model_says_to_the_last_bit(
    model: StepModel, count: int, context: int, drafted: float
) -> None:
    some = round(drafted * count)
    rows = Rows(count, count * context, some, some * context)
    step, plainly = (
        PrecomputedSteps(model).decode(rows.count, rows.context, rows.drafted, rows.drafted_context),
        model.step(rows),
    )
    assert (step.seconds, step.drafting_s) == (plainly.seconds, plainly.drafting_s)
    assert step.energy_j == pytest.approx(plainly.energy_j + plainly.link_j, rel=1e-12)


@given(model=MODELS, lengths=st.lists(st.integers(1, 8192), min_size=1, max_size=6))
def test_reading_prompts_takes_what_the_step_model_says_to_the_last_bit(model: StepModel, lengths: list[int]) -> None:
    prompts = NO_PROMPTS
    for length in lengths:
        prompts = prompts.plus(length)
    step, plainly = PrecomputedSteps(model).prefill(prompts.tokens, prompts.attended), model.step(Rows(), prompts)
    assert (step.seconds, step.drafting_s) == (plainly.seconds, plainly.drafting_s)
    assert step.energy_j == pytest.approx(plainly.energy_j + plainly.link_j, rel=1e-12)


def test_the_baseline_drafts_nothing() -> None:
    model = StepModel(device("h100-sxm"), transformer("llama-3-8b"))
    assert PrecomputedSteps(model).decode(4, 2000, 0, 0).drafting_s == 0
    assert PrecomputedSteps(replace(model, k=3)).decode(4, 2000, 0, 0).seconds == model.seconds(Rows(4, 2000))
