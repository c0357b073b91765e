from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speclab.roofline.devices import DEVICES, device
from speclab.roofline.forward_pass import LOWEST_CLOCK, Work, decode, pass_seconds, pass_time, prefill, verify, work
from speclab.roofline.transformers import transformer

H100 = device("h100-sxm")
LLAMA_8B = transformer("llama-3-8b")
MTP = transformer("mtp-head-8b")


def test_decode_of_one_row_by_hand() -> None:
    asked = decode(LLAMA_8B, 1.0, 512.0)
    assert asked.flops == 2 * 7_504_658_432 + 4 * 32 * 4096 * 513
    assert asked.bytes == 2 * 7_504_658_432 + 2 * 4096 + 513 * 131_072


def test_prefill_by_hand() -> None:
    asked = prefill(LLAMA_8B, 512.0, 2.0)
    assert asked.flops == 2 * 7_504_658_432 * 1024 + 2 * (2 * 32 * 4096 * 512 * 513)
    assert asked.bytes == 2 * 7_504_658_432 + 1024 * 2 * 4096 + 1024 * 131_072


def test_verify_by_hand() -> None:
    asked = verify(LLAMA_8B, 8.0, 8 * 512.0, k=3)
    assert asked.flops == 2 * 7_504_658_432 * 8 * 4 + 2 * 32 * 4096 * 4 * (2 * 8 * 512 + 8 * 5)
    assert asked.bytes == 2 * 7_504_658_432 + 32 * 2 * 4096 + (8 * 512 + 32) * 131_072


def test_prefill_of_512_tokens_is_bound_by_power() -> None:
    timed = pass_time(H100, prefill(LLAMA_8B, 512.0, 1.0))
    assert timed.bound == "power"
    assert timed.seconds * 1e3 + 0.5 == pytest.approx(14.817294, abs=5e-7)  # the source adds 0.5 ms overhead


def test_anatomy_of_the_verify_pass_at_128_rows() -> None:
    context = 128 * 512.0
    plain, checked = (
        pass_time(H100, decode(LLAMA_8B, 128.0, context)),
        pass_time(H100, verify(LLAMA_8B, 128.0, context, 3)),
    )
    assert (plain.bound, checked.bound) == ("memory", "power")
    assert plain.seconds * 1e3 + 0.5 == pytest.approx(9.312, abs=5e-4)
    assert checked.seconds * 1e3 + 0.5 == pytest.approx(15.255, abs=5e-4)
    assert checked.compute_s * 1e3 == pytest.approx(14.382, abs=5e-4)
    assert checked.memory_s * 1e3 == pytest.approx(8.832, abs=5e-4)
    asked = verify(LLAMA_8B, 128.0, context, 3)
    full_clock_j = asked.flops * 1e-12 + asked.bytes * 60e-12
    assert full_clock_j / checked.compute_s == pytest.approx(643, abs=0.5)


@pytest.mark.parametrize(("batch", "milliseconds"), [(1.0, 0.5556), (128.0, 0.656)])
def test_anatomy_of_an_mtp_draft(batch: float, milliseconds: float) -> None:
    middle = pass_time(H100, decode(MTP, batch, batch * 513)).seconds * 1e3
    assert middle == pytest.approx(milliseconds, abs=5e-4)


@given(
    slug=st.sampled_from(sorted(DEVICES)),
    rows=st.integers(1, 1024),
    context=st.integers(0, 8192),
    k=st.integers(0, 16),
)
def test_laws_of_a_pass(slug: str, rows: int, context: int, k: int) -> None:
    machine = device(slug)
    asked = verify(LLAMA_8B, float(rows), float(rows * context), k)
    timed = pass_time(machine, asked)
    # never faster than either roof, never over the power budget, clock within its range
    assert timed.seconds >= max(timed.compute_s, timed.memory_s)
    assert timed.energy_j <= machine.dynamic_power_w * timed.seconds * (1 + 1e-9)
    assert LOWEST_CLOCK <= timed.clock <= 1
    assert (timed.clock < 1) <= (timed.bound == "power")
    # more positions are never free of work, and never shorten a pass
    more = verify(LLAMA_8B, float(rows), float(rows * context), k + 1)
    assert more.flops > asked.flops
    assert more.bytes > asked.bytes
    assert pass_time(machine, more).seconds >= timed.seconds * (1 - 1e-12)


@given(rows=st.lists(st.tuples(st.integers(0, 4096), st.integers(1, 9)), min_size=1, max_size=20))
def test_three_sums_describe_any_mix_of_rows(rows: list[tuple[int, int]]) -> None:
    tokens = float(sum(new for _, new in rows))
    attended = float(sum(sum(range(cached + 1, cached + new + 1)) for cached, new in rows))  # position i sees i keys
    kv_tokens = float(sum(cached + new for cached, new in rows))
    each = [verify(LLAMA_8B, 1.0, float(cached), new - 1) for cached, new in rows]
    mixed = work(LLAMA_8B, tokens, attended, kv_tokens)
    assert mixed.flops == pytest.approx(sum(row.flops for row in each), rel=1e-12)
    weights_again = (len(rows) - 1) * 2 * LLAMA_8B.matmul_parameters  # one pass reads the weights once
    assert mixed.bytes == pytest.approx(sum(row.bytes for row in each) - weights_again, rel=1e-12)


def test_verify_without_drafts_is_decode() -> None:
    assert verify(LLAMA_8B, 7.0, 900.0, 0) == decode(LLAMA_8B, 7.0, 900.0)


def test_many_passes_at_once() -> None:
    batches = np.array([1.0, 32.0, 512.0])
    contexts = np.array([[512.0], [2048.0]])
    seconds = pass_seconds(H100, verify(LLAMA_8B, batches, batches * contexts, 3))
    assert seconds.shape == (2, 3)
    for i, context in enumerate(contexts[:, 0]):
        for j, batch in enumerate(batches):
            asked = verify(LLAMA_8B, float(batch), float(batch * context), 3)
            assert seconds[i, j] == pass_time(H100, asked).seconds


@pytest.mark.parametrize(
    ("times_budget", "clock", "seconds"),
    [(10, 0.1 ** (1 / 3), 10 ** (1 / 3)), (25, LOWEST_CLOCK, 4.0)],
)
def test_the_clock_falls_to_its_lowest_and_then_the_pass_is_stretched(
    times_budget: float, clock: float, seconds: float
) -> None:
    # 1 s of compute alone, at times_budget x the power budget: power goes as clock^3, so 10 x asks for 0.1^(1/3);
    # 25 x asks for 0.34, below the lowest: at 0.4 the energy is 0.16 x 25 = 4 s worth of the budget
    joules = times_budget * H100.dynamic_power_w
    hungry = dataclasses.replace(H100, pj_per_flop=joules / H100.flop_per_s * 1e12)
    timed = pass_time(hungry, Work(H100.flop_per_s, 1e-6))
    assert timed.bound == "power"
    assert timed.clock == pytest.approx(clock)
    assert timed.energy_j == pytest.approx(clock**2 * joules)
    assert timed.seconds == pytest.approx(seconds)
