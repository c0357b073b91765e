"""The price of one pass with everything that does not change worked out beforehand.

`StepCost` says what a step costs; a simulation asks it a million times. This is the same arithmetic in the same order,
so that both agree to the last bit (a test holds them together).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from speclab.roofline.cost import Work, pass_time
from speclab.roofline.step import StepCost
from speclab.roofline.transformers import BYTES_PER_VALUE, Transformer


class Price(NamedTuple):
    """Time and energy of one step."""

    seconds: float
    drafting_s: float
    energy_j: float
    """Dynamic energy of GPUs and links, J."""


PassPrice = Callable[[float, float, float], tuple[float, float]]
"""From a pass's three sums (`speclab.roofline.cost`) to its seconds and joules."""


class Pricing:
    """Prices the steps of one `StepCost` that either read prompts or write tokens.

    Parameters
    ----------
    cost : StepCost
        What is priced.
    """

    def __init__(self, cost: StepCost):
        self._k, self._floor_s = cost.k, cost.floor_s
        self._overhead_s, self._host_s = cost.overhead_s, cost.host_s
        self._beyond_last = (cost.k + 1) * (cost.k + 2) / 2 - 1
        self._target = _pass_price(cost, cost.target, reduces=True)
        self._drafter = _draft_price(cost)

    def prefill(self, tokens: int, attended: float) -> Price:
        """Return the price of reading prompts of `tokens` tokens in all."""
        seconds, joules = self._target(tokens, attended, tokens)
        drafting_s = drafting_j = 0.0
        if self._drafter is not None:
            drafting_s, drafting_j = self._drafter(tokens, attended, tokens)
        return Price(seconds + self._overhead_s + drafting_s + self._host_s, drafting_s, joules + drafting_j)

    def decode(self, count: int, context: int, drafted: int, drafted_context: int) -> Price:
        """Return the price of one pass over rows (see `speclab.roofline.step.Rows`)."""
        k, drafter = self._k, self._drafter
        tokens = count + k * drafted
        attended = context + count + k * drafted_context + drafted * self._beyond_last
        seconds, joules = self._target(tokens, attended, context + tokens)
        drafting_s = 0.0
        if drafted and drafter is None:
            for _ in range(k):
                drafting_s += self._floor_s
        elif drafted and drafter is not None:
            for cached in range(drafted_context + drafted, drafted_context + k * drafted + 1, drafted):
                more_s, more_j = drafter(drafted, cached, cached)
                drafting_s += more_s
                joules += more_j
        return Price(seconds + self._overhead_s + drafting_s + self._host_s, drafting_s, joules)


def _draft_price(cost: StepCost) -> PassPrice | None:
    if cost.drafter is None:
        return None
    return _pass_price(
        cost, cost.drafter, reduces=cost.draft_all_reduce, floor_s=cost.floor_s, overhead_s=cost.draft_overhead_s
    )


def _pass_price(
    cost: StepCost, shape: Transformer, *, reduces: bool, floor_s: float = 0.0, overhead_s: float = 0.0
) -> PassPrice:
    device = cost.device
    flop_per_s, byte_per_s, budget_w = device.flop_per_s, device.byte_per_s, device.dynamic_power_w
    pj_per_flop, pj_per_byte = device.pj_per_flop, device.pj_per_byte
    flops_a_token, flops_a_pair = 2 * shape.matmul_parameters, 4 * shape.layers * shape.width
    weights = BYTES_PER_VALUE * shape.matmul_parameters
    bytes_a_token, bytes_cached = BYTES_PER_VALUE * shape.width, shape.kv_bytes_per_token

    def price(tokens: float, attended: float, kv_tokens: float) -> tuple[float, float]:
        flops = flops_a_token * tokens + flops_a_pair * attended
        size = weights + bytes_a_token * tokens + kv_tokens * bytes_cached
        compute_s = flops / flop_per_s
        memory_s = size / byte_per_s
        seconds = compute_s if compute_s > memory_s else memory_s
        joules = flops * pj_per_flop * 1e-12 + size * pj_per_byte * 1e-12
        if joules > budget_w * seconds:
            timed = pass_time(device, Work(flops, size))  # held back by the power limit
            return timed.seconds, timed.energy_j
        return seconds, joules

    gpus, link, times = device.gpus, device.link, 2 * shape.layers

    def charged(tokens: float, attended: float, kv_tokens: float) -> tuple[float, float]:
        seconds, joules = price(tokens, attended, kv_tokens)
        seconds = (seconds if seconds > floor_s else floor_s) + overhead_s
        if reduces and link is not None and gpus > 1:
            size = tokens * bytes_a_token
            return (
                seconds + times * link.all_reduce_s(gpus, size),
                joules + times * link.all_reduce_j(gpus, size),
            )
        return seconds, joules

    return charged if floor_s or overhead_s or (reduces and gpus > 1) else price
