from __future__ import annotations

from dataclasses import replace

import pytest

from speclab.roofline.devices import device, together
from speclab.roofline.forward_pass import decode, pass_time, prefill, verify
from speclab.roofline.speculation import tokens_per_pass_flat
from speclab.roofline.step import NO_PROMPTS, STEP_OVERHEAD_S, Prompts, Rows, StepModel
from speclab.roofline.transformers import transformer

H100 = device("h100-sxm")
TARGET, MTP = transformer("llama-3-8b"), transformer("mtp-head-8b")


@pytest.mark.parametrize(
    ("slug", "batch", "plain_s", "speculative_s", "speed_up"),
    [
        # inference-tradeoffs-explained: seconds a token, MTP head, k 3, alpha 0.7, context 512
        ("h100-sxm", 1, 0.006125583952238806, 0.003076401308106134, 1.99),
        ("h100-sxm", 32, 2.1573294029850746e-4, 1.0669870426784359e-4, 2.02),
        ("h100-sxm", 128, 7.275267388059702e-5, 5.311684230523942e-5, 1.37),
        ("h100-sxm", 512, 3.7007607276119405e-5, 4.810471016387812e-5, 0.77),
        ("a100-sxm", 1, 0.009742621991172143, 0.004927494032183709, 1.98),
        ("a100-sxm", 128, 1.1701832454634623e-4, 1.530142878280534e-4, 0.76),
    ],
)
def test_seconds_a_token_to_the_last_digit(
    slug: str, batch: int, plain_s: float, speculative_s: float, speed_up: float
) -> None:
    context = 512 * batch
    plain = StepModel(device(slug), TARGET).seconds(Rows(batch, context)) / batch
    step = StepModel(device(slug), TARGET, MTP, k=3).seconds(Rows(batch, context, batch, context))
    speculative = step / (batch * tokens_per_pass_flat(0.7, 3))
    assert plain == pytest.approx(plain_s, rel=1e-12)
    assert speculative == pytest.approx(speculative_s, rel=1e-12)
    assert plain / speculative == pytest.approx(speed_up, abs=0.005)


def test_at_context_2048_speculation_still_wins_at_512_rows() -> None:
    rows = Rows(512, 512 * 2048, 512, 512 * 2048)
    plain = StepModel(H100, TARGET).seconds(Rows(512, 512 * 2048))
    assert plain * tokens_per_pass_flat(0.7, 3) > StepModel(H100, TARGET, MTP, k=3).seconds(rows)


def test_animation_steps_of_the_source() -> None:
    model = StepModel(H100, TARGET, MTP, k=3)
    # prompts of 512 and 384 tokens are read one after the other, then decode together; 1.66857 ms are drafts
    rows = Rows(2, 512 + 384 + 2, 2, 512 + 384 + 2)
    assert model.seconds(rows) * 1e3 == pytest.approx(7.81340, abs=5e-6)
    assert model.drafting_seconds(rows) * 1e3 == pytest.approx(1.66857, abs=5e-6)
    prompt = NO_PROMPTS.plus(512)
    assert model.seconds(Rows(), prompt) * 1e3 == pytest.approx(16.2273, abs=5e-5)
    assert model.drafting_seconds(Rows(), prompt) * 1e3 == pytest.approx(1.4100, abs=5e-5)
    assert model.seconds(Rows(), NO_PROMPTS.plus(384)) * 1e3 == pytest.approx(12.4215, abs=5e-5)


def test_rows_without_a_draft_verify_one_position() -> None:
    model = StepModel(H100, TARGET, k=8)
    undrafted = pass_time(H100, decode(TARGET, 5.0, 1500.0)).seconds + STEP_OVERHEAD_S
    drafted = pass_time(H100, verify(TARGET, 5.0, 1500.0, 8)).seconds + STEP_OVERHEAD_S
    assert model.target_seconds(Rows(5, 1500)) == undrafted
    assert model.target_seconds(Rows(5, 1500, 5, 1500)) == drafted
    assert undrafted < model.target_seconds(Rows(5, 1500, 2, 600)) < drafted


def test_drafting_is_paid_by_position_and_not_below_its_floor() -> None:
    rows = Rows(1, 100, 1, 100)
    roofline = sum(pass_time(H100, decode(MTP, 1.0, 100.0 + j)).seconds for j in range(3))
    assert StepModel(H100, TARGET, MTP, k=3).drafting_seconds(rows) == pytest.approx(roofline, rel=1e-12)
    assert StepModel(H100, TARGET, MTP, k=3, floor_s=2e-3).drafting_seconds(rows) == pytest.approx(6e-3)
    assert StepModel(H100, TARGET, k=3, floor_s=2e-3).drafting_seconds(rows) == pytest.approx(6e-3)


def test_a_step_without_drafts_pays_the_host_but_no_drafting() -> None:
    model = StepModel(H100, TARGET, MTP, k=3, floor_s=2e-3, host_s=1e-3)
    assert model.drafting_seconds(Rows(4, 400)) == 0
    assert model.seconds(Rows(4, 400)) == model.target_seconds(Rows(4, 400)) + 1e-3


def test_a_prompt_in_pieces_attends_as_much_as_whole() -> None:
    whole, pieces = NO_PROMPTS.plus(300), NO_PROMPTS.plus(200).plus(100, cached=200)
    assert (pieces.tokens, pieces.attended) == (whole.tokens, whole.attended) == (300, 300 * 301 / 2)
    assert pieces.kv_tokens == whole.kv_tokens + 200  # the second piece reads the first one's cache again


def test_prompts_share_the_pass_of_the_rows() -> None:
    model = StepModel(H100, TARGET)
    alone = pass_time(H100, prefill(TARGET, 64.0, 1.0)).seconds + STEP_OVERHEAD_S
    assert model.seconds(Rows(), Prompts().plus(64)) == alone
    together = model.seconds(Rows(8, 800), Prompts().plus(64))
    assert together < alone + model.seconds(Rows(8, 800))


@pytest.mark.parametrize(
    ("rows", "prompt", "milliseconds", "all_reduce_ms"),
    # printed by the source: Llama 3 70B on four H100, context 2048
    [
        (Rows(1, 2048), 0, 18.338, 4.809),
        (Rows(64, 64 * 2048), 0, 22.835, 5.359),
        (Rows(), 8192, 640.670, 76.383),
    ],
)
def test_tensor_parallel_steps_pay_all_reduces(
    rows: Rows, prompt: int, milliseconds: float, all_reduce_ms: float
) -> None:
    step = StepModel(together(H100, 4), transformer("llama-3-70b")).step(rows, NO_PROMPTS.plus(prompt))
    assert step.seconds * 1e3 == pytest.approx(milliseconds, abs=5e-4)
    assert step.all_reduce_s * 1e3 == pytest.approx(all_reduce_ms, abs=5e-4)


def test_a_step_s_energy_is_that_of_its_passes() -> None:
    rows = Rows(2, 900, 2, 900)
    target = pass_time(H100, verify(TARGET, 2.0, 900.0, 3))
    drafts = [pass_time(H100, decode(MTP, 2.0, 900.0 + 2 * j)) for j in range(3)]
    step = StepModel(H100, TARGET, MTP, k=3).step(rows)
    assert step.energy_j == pytest.approx(target.energy_j + sum(draft.energy_j for draft in drafts))
    assert (step.link_j, step.all_reduce_s, step.bound) == (0, 0, "memory")
    assert step.seconds == StepModel(H100, TARGET, MTP, k=3).seconds(rows)
    # 70B on four GPUs, one row: 160 all-reduces of 16 KiB, each GPU sending 1.5 times that, 5 pJ a bit
    reduced = StepModel(together(H100, 4), transformer("llama-3-70b")).step(Rows(1, 2048))
    assert reduced.link_j == pytest.approx(160 * 4 * 1.5 * 16384 * 8 * 5e-12)


def test_what_drafting_is_charged_comes_on_top() -> None:
    free = StepModel(together(H100, 4), TARGET, MTP, k=3)
    rows = Rows(8, 4000, 8, 4000)
    launched = replace(free, draft_overhead_s=5e-4)
    reducing = replace(free, draft_all_reduce=True)
    one = 2 * 1 * H100.link.all_reduce_s(4, 8 * 4096 * 2)  # the MTP head has one layer
    assert launched.drafting_seconds(rows) == pytest.approx(free.drafting_seconds(rows) + 3 * 5e-4)
    assert reducing.drafting_seconds(rows) == pytest.approx(free.drafting_seconds(rows) + 3 * one)
    assert reducing.step(rows).link_j > free.step(rows).link_j
    assert launched.target_seconds(rows) == reducing.target_seconds(rows) == free.target_seconds(rows)
