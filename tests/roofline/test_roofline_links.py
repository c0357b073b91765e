from __future__ import annotations

import pytest

from speclab.errors import UserError
from speclab.roofline.devices import device, together
from speclab.roofline.links import NVLINK4


def test_a_ring_all_reduce_by_hand() -> None:
    # 4 GPUs send 3/4 of 1 MB twice over 450 GB/s, in 6 hops of 5 us; every GPU sends 1.5 MB at 5 pJ a bit
    assert NVLINK4.all_reduce_s(4, 1e6) == pytest.approx(1.5e6 / 450e9 + 30e-6)
    assert NVLINK4.all_reduce_j(4, 1e6) == pytest.approx(6e6 * 8 * 5e-12)


@pytest.mark.parametrize(
    ("slug", "byte_per_s", "usd"),
    [("h100-sxm", 450e9, 3.0), ("a100-sxm", 300e9, None), ("h200-sxm", 450e9, 3.5), ("b200", 900e9, 5.0)],
)
def test_links_and_prices_of_the_source(slug: str, byte_per_s: float, usd: float | None) -> None:
    found = device(slug)
    assert found.link is not None
    assert (found.link.byte_per_s, found.usd_per_hour) == (byte_per_s, usd)


def test_gpus_together_are_as_fast_as_all_of_them() -> None:
    one, four = device("h100-sxm"), together(device("h100-sxm"), 4)
    assert (four.flop_per_s, four.byte_per_s) == (4 * one.flop_per_s, 4 * one.byte_per_s)
    assert four.dynamic_power_w == 2400
    assert four.ridge_flop_per_byte == one.ridge_flop_per_byte
    with pytest.raises(UserError, match="found 0 GPUs; give 1 or more"):
        together(one, 0)
