from __future__ import annotations

from speclab.roofline.devices import device
from speclab.roofline.memory import kv_capacity_tokens
from speclab.roofline.transformers import transformer


def test_room_on_one_h100_is_that_of_the_source() -> None:
    h100, target = device("h100-sxm"), transformer("llama-3-8b")
    assert kv_capacity_tokens(h100, target) == 426_788
    assert kv_capacity_tokens(h100, target, transformer("mtp-head-8b")) == 410_628


def test_weights_that_do_not_fit_leave_less_than_nothing() -> None:
    assert kv_capacity_tokens(device("h100-sxm"), transformer("llama-3-70b")) < 0
