from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from speclab import prompts, results
from speclab.predict.parameters import Parameters
from speclab.predict.step_time import Draft, ModelOptions, launch_s, step, step_s
from speclab.predict.traffic import Traffic, closed_loop
from speclab.roofline.devices import device
from speclab.roofline.forward_pass import work
from speclab.roofline.step import Rows, StepModel
from speclab.roofline.transformers import transformer

H100, TARGET, HEAD = device("h100-sxm"), transformer("llama-3-8b"), transformer("eagle3-head-8b")
SHARP = Parameters(overhead_s=0.5e-3, byte_per_s=H100.byte_per_s, flop_per_s=H100.flop_per_s, smoothing=500)
TRAFFIC = Traffic(400.0)


@pytest.mark.parametrize("rows", [1, 32])
@pytest.mark.parametrize("k", [0, 3])
def test_a_sharp_corner_is_the_house_roofline(rows: int, k: int) -> None:
    # memory-bound and below the power limit at these sizes, so that `pass_time` is the longer of the two
    context = 400 * rows
    of_house = StepModel(H100, TARGET, k=k).seconds(Rows(rows, context, rows if k else 0, context if k else 0))
    assert float(step_s(SHARP, TARGET, rows, TRAFFIC, Draft(k))) == pytest.approx(of_house, rel=1e-6)


def test_the_smoothing_adds_squares() -> None:
    rows, context = 8.0, 400.0
    asked = work(TARGET, rows, rows * (context + 1), rows * (context + 1))
    bent = Parameters(overhead_s=1.0, byte_per_s=asked.bytes / 3, flop_per_s=asked.flops / 4, smoothing=2)
    assert float(step_s(bent, TARGET, rows, Traffic(context))) == pytest.approx(1 + 5)  # 3, 4, 5
    added = bent.replaced(smoothing=1)
    assert float(step_s(added, TARGET, rows, Traffic(context))) == pytest.approx(1 + 7)


def test_the_host_is_paid_by_row_token_and_position() -> None:
    host = SHARP.replaced(row_s=1e-6, token_s=10e-6, position_s=100e-6)
    parts, bare = (step(each, TARGET, 10, TRAFFIC, Draft(3), 2.5) for each in (host, SHARP))
    assert float(parts.other_s - bare.other_s) == pytest.approx(10 * 1e-6 + 25 * 10e-6)
    assert float(parts.sampling_s) == pytest.approx(40 * 100e-6)
    assert float(parts.verify_s) == float(bare.verify_s)


def test_a_row_without_a_draft_verifies_one_position() -> None:
    parts = [
        step(SHARP.replaced(position_s=1e-6), TARGET, 10, TRAFFIC, Draft(8, draft_rate=share)) for share in (0.25, 1)
    ]
    assert [float(each.sampling_s) for each in parts] == pytest.approx([30e-6, 90e-6])


def test_a_lookup_is_paid_by_row_and_no_network_runs() -> None:
    searched = SHARP.replaced(lookup_s=2e-6, launch_s=1e-3)
    assert float(step(searched, TARGET, 50, TRAFFIC, Draft(8)).drafting_s) == pytest.approx(100e-6)
    assert float(step(searched, TARGET, 50, TRAFFIC).drafting_s) == 0


def test_drafting_has_a_launch_and_a_roofline_part() -> None:
    launched = SHARP.replaced(launch_s=0.3e-3)
    draft = Draft(3, HEAD)
    bare = step(SHARP, TARGET, 1, TRAFFIC, draft).drafting_s
    assert float(step(launched, TARGET, 1, TRAFFIC, draft).drafting_s - bare) == pytest.approx(0.9e-3)
    # reading the head's weights three times, at one row, and next to nothing else
    assert float(bare) == pytest.approx(3 * 2 * HEAD.matmul_parameters / H100.byte_per_s, rel=0.01)


def test_what_a_position_adds_gives_its_launch_back() -> None:
    launched = SHARP.replaced(launch_s=0.3e-3)
    added = step_s(launched, TARGET, 1, TRAFFIC, Draft(3, HEAD), 2.7) - step_s(launched, TARGET, 1, TRAFFIC)
    assert launch_s(SHARP, TARGET, HEAD, 3, float(added) / 3, TRAFFIC, 2.7) == pytest.approx(0.3e-3)


def test_the_first_draft_pass_runs_over_what_was_verified() -> None:
    # long past the ridge its time is arithmetic: four positions a row in the first pass, one in each of the others
    compute = SHARP.replaced(flop_per_s=1e12)
    times = [
        float(
            step(compute, TARGET, 512, Traffic(0.0), Draft(3, HEAD), options=ModelOptions(first_pass=first)).drafting_s
        )
        for first in (True, False)
    ]
    assert times[0] / times[1] == pytest.approx((4 + 1 + 1) / 3, rel=0.01)


def test_prompts_of_the_others_share_the_steps() -> None:
    compute = SHARP.replaced(flop_per_s=1e12)
    loop = Traffic(0.0, prompt=50, answer=100)
    with_prompts, without = (
        float(step(compute, TARGET, 100, loop, tokens_per_step=2.0, options=ModelOptions(prefill=prefill)).verify_s)
        for prefill in (True, False)
    )
    # where arithmetic binds throughout, means add: 100 positions, and 99 others x 2 tokens x half a prompt token
    assert with_prompts / without == pytest.approx((100 + 99) / 100, rel=1e-3)


def test_one_request_alone_sees_no_prompt() -> None:
    assert float(step_s(SHARP, TARGET, 1, Traffic(400.0, 50, 100))) == float(step_s(SHARP, TARGET, 1, Traffic(400.0)))


def test_prompts_come_whole() -> None:
    # 32 rows, a prompt of 1000 tokens every 16 steps or so: most steps stay memory-bound, some are far beyond the ridge
    rare = Traffic(400.0, prompt=1000, answer=500)
    mean = 31 / 500
    without = float(step_s(SHARP, TARGET, 32, Traffic(400.0)))
    tokens = 1000 * mean / (1 - np.exp(-mean))
    # a step with prompts is bound by arithmetic: its weights' operations for all its tokens, give or take attention
    busy = 2 * TARGET.matmul_parameters * (32 + tokens) / H100.flop_per_s + SHARP.overhead_s
    expected = (1 - np.exp(-mean)) * busy + np.exp(-mean) * without
    assert float(step_s(SHARP, TARGET, 32, rare)) == pytest.approx(expected, rel=5e-3)
    spread_evenly = float(step_s(SHARP, TARGET, 32 + 1000 * mean, Traffic(400.0 * 32 / (32 + 1000 * mean))))
    assert float(step_s(SHARP, TARGET, 32, rare)) > 1.1 * spread_evenly


@pytest.mark.parametrize("workload", ["chat", "completion", "revision"])
def test_a_closed_loop_is_what_the_event_simulator_makes_of_it(workload: str) -> None:
    found = results.of("lab09", "simulated")
    answers = found.lab.simulated.answers[workload]
    prompt = prompts.summary(found.lab.target.tokens).set_index("workload").loc[workload, "mean_tokens"]
    traffic = closed_loop(prompt, answers.mean_tokens, answers.cv, found.lab.sampling.max_tokens)
    for at in (1, 16, 64, 128):
        simulated = found.value("step_time", arm="baseline", workload=workload, concurrency=at)
        # both have the same rates and the same overhead: what differs is events against their mean
        assert 1e3 * float(step_s(SHARP, TARGET, at, traffic)) == pytest.approx(simulated, rel=0.035)


@pytest.mark.parametrize(("rows", "padded"), [(8, 8), (9, 16), (17, 32), (33, 33)])
def test_captured_sizes_are_a_staircase(rows: int, padded: int) -> None:
    compute, none = SHARP.replaced(flop_per_s=1e12), Traffic(0.0)
    stairs = step(compute, TARGET, rows, none, options=ModelOptions(captured=(8, 16, 32))).verify_s
    assert float(stairs) == pytest.approx(float(step(compute, TARGET, padded, none).verify_s), rel=1e-3)


def test_without_graphs_a_draft_pays_launches_by_the_layer() -> None:
    eager = step(SHARP, TARGET, 1, TRAFFIC, Draft(3, HEAD), options=ModelOptions(eager=True)).drafting_s
    graphs = step(SHARP, TARGET, 1, TRAFFIC, Draft(3, HEAD)).drafting_s
    assert float(eager - graphs) == pytest.approx(3 * 0.5e-3 / 32)


def test_drafting_that_does_not_grow_is_that_of_one_row() -> None:
    flat = [
        float(step(SHARP, TARGET, rows, TRAFFIC, Draft(3, HEAD), 2.0, ModelOptions(drafting_grows=False)).drafting_s)
        for rows in (1, 256)
    ]
    assert flat[0] == flat[1]
    grown = [float(step(SHARP, TARGET, rows, TRAFFIC, Draft(3, HEAD), 2.0).drafting_s) for rows in (1, 256)]
    assert grown[1] > 1.2 * grown[0]


def test_many_rows_are_priced_at_once() -> None:
    rows = np.array([1.0, 16.0, 300.0])
    together = step_s(SHARP, TARGET, rows, TRAFFIC, Draft(3, HEAD), 2.0)
    assert together.shape == (3,)
    assert together.tolist() == pytest.approx(
        [float(step_s(SHARP, TARGET, at, TRAFFIC, Draft(3, HEAD), 2.0)) for at in rows]
    )


def test_another_device_keeps_its_share_of_the_data_sheet() -> None:
    b200 = device("b200")
    moved = SHARP.on(b200, H100)
    assert moved.byte_per_s / b200.peak_byte_per_s == pytest.approx(0.80)
    assert moved.flop_per_s / b200.peak_flop_per_s == pytest.approx(0.55)
    assert moved.overhead_s == SHARP.overhead_s


def test_a_draft_of_its_own_launch_does_not_ask_the_parameters() -> None:
    own = step(SHARP.replaced(launch_s=9.0), TARGET, 1, TRAFFIC, replace(Draft(3, HEAD), launch_s=0.0))
    assert float(own.drafting_s) < 0.01


def test_launches_hide_behind_a_longer_pass_of_the_target() -> None:
    launched, hides = SHARP.replaced(launch_s=0.3e-3), ModelOptions(launches_hide=True)
    draft = Draft(3, HEAD)
    alone = [
        float(step(launched, TARGET, 1, TRAFFIC, draft, options=each).drafting_s) for each in (ModelOptions(), hides)
    ]
    assert alone[0] == alone[1]  # nothing to hide behind
    full = [
        float(step(launched, TARGET, 256, TRAFFIC, draft, options=each).drafting_s) for each in (ModelOptions(), hides)
    ]
    assert full[0] - full[1] == pytest.approx(3 * 0.3e-3)  # all of them: the pass is many milliseconds longer
