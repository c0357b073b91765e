from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speclab.errors import UserError
from speclab.probe.plan import FEWEST, MOST, bytes_of, cost_s, cut, estimate_s, plan, repeats, weight_bytes
from speclab.probe.points import SCOUTS, Point, beyond
from speclab.roofline.forward_pass import work
from speclab.roofline.transformers import transformer

LLAMA_8B, SMOLLM2 = transformer("llama-3-8b"), transformer("smollm2-135m")


def test_weights_are_the_layers_and_both_matrices_of_the_vocabulary() -> None:
    # 30 layers of 576 x (576 + 2 x 192) + 576 x 576 + 3 x 576 x 1536, and twice 49152 x 576, two bytes each
    assert weight_bytes(SMOLLM2, 30, "bfloat16") == 325_582_848
    assert weight_bytes(SMOLLM2, 30, "float32") == 651_165_696
    # what an EAGLE-3 head borrows has to be there to be read: 128256 x 4096 of embedding beside its own 32000 x 4096
    head = transformer("eagle3-head-8b")
    assert weight_bytes(head, 1, "bfloat16") - head.resident_bytes == 2 * 128256 * 4096


def test_a_model_is_cut_to_the_layers_that_fit_beside_the_cores_cache() -> None:
    # the core's biggest point, 64 rows x 4 at 1,024: a layer takes 436,207,616 byte and 64 x 1,028 x 4,096 of cache;
    # besides 2,101,346,304 of embedding and head, 33,685,504 of scores and 192,151,552 of other activations
    biggest = Point("step", 64, 4, 1024)
    assert bytes_of(LLAMA_8B, 8, biggest, "bfloat16") == 2_327_183_360 + 8 * 705_691_648
    assert plan(LLAMA_8B, 9e9).layers == 8  # 0.9 x 9 GB hold 7.97 GB, and not 8.68
    assert plan(LLAMA_8B, 40e9).layers == 32
    assert plan(LLAMA_8B, 40e9, layers=3).cut.layers == 3


def test_what_does_not_fit_is_kept_apart_and_nothing_is_lost() -> None:
    planned = plan(SMOLLM2, 8e9)
    assert planned.too_big
    assert sorted(map(repr, planned.beyond + planned.too_big)) == sorted(map(repr, beyond()))
    assert all(bytes_of(SMOLLM2, 30, point, "bfloat16") <= 0.9 * 8e9 for point in planned.core + planned.beyond)
    assert all(bytes_of(SMOLLM2, 30, point, "bfloat16") > 0.9 * 8e9 for point in planned.too_big)


@pytest.mark.parametrize(
    ("free_bytes", "layers", "expected"),
    [
        (2e9, None, r"1 layer of llama-3-8b in bfloat16 .* need 3.0 GB, 1.8 GB may be used here; free some memory or"),
        (9e9, 20, r"20 layers of .* need 16.4 GB, 8.1 GB may be used here; free some memory or take --layers 8"),
        (90e9, 33, r"--layers: found 33; llama-3-8b has 1 to 32 to run"),
        (90e9, 0, r"--layers: found 0; llama-3-8b has 1 to 32 to run"),
    ],
)  # fmt: skip
def test_what_cannot_fit_is_one_sentence(free_bytes: float, layers: int | None, expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        plan(LLAMA_8B, free_bytes, layers=layers)


def test_an_estimate_grows_with_the_work() -> None:
    known = {SCOUTS[0]: 0.010, SCOUTS[1]: 0.015}
    assert estimate_s(SMOLLM2, SCOUTS[0], known) == 0.010
    # eight times the rows of the second scout, one of 4 positions at 256: eight times its operations, fewer bytes
    assert estimate_s(SMOLLM2, Point("step", 64, 4, 256), known) == pytest.approx(8 * 0.015)
    # a head at one token is no more than the smallest step
    assert estimate_s(SMOLLM2, Point("head", 1, 1, 0), known) == 0.010
    assert cost_s(SMOLLM2, Point("step", 64, 4, 256), known) == pytest.approx((2 + 5) * 0.120)


@given(
    st.sampled_from(beyond()), st.floats(0.05, 1), st.floats(1e-14, 1e-11), st.floats(1e-13, 1e-9), st.floats(0, 0.1)
)
def test_no_roofline_takes_longer_than_its_estimate(
    point: Point, share: float, flop_s: float, byte_s: float, launch_s: float
) -> None:
    shape = cut(SMOLLM2, 30)

    def seconds(each: Point) -> float:
        asked = work(shape, float(each.tokens), each.attended, float(each.kv_tokens))
        return launch_s + max(asked.flops * flop_s, asked.bytes * byte_s) + share * asked.bytes * byte_s

    estimate = estimate_s(shape, point, {scout: seconds(scout) for scout in SCOUTS})
    assert seconds(point) <= estimate * (1 + 1e-9)


def test_repeats_are_bounded_on_both_sides() -> None:
    assert (repeats(0.0), repeats(0.02), repeats(10.0)) == (MOST, 20, FEWEST)
