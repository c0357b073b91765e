"""The price of one pass with everything that does not change worked out beforehand.

`StepCost` says what a step costs; a simulation asks it a million times. This is the same arithmetic in the same order,
so that both agree to the last bit (a test holds them together).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from speclab.model.cost import Work, pass_time
from speclab.model.step import StepCost
from speclab.model.transformers import BYTES_PER_VALUE, Transformer


class Price(NamedTuple):
    """Time and energy of one step."""

    seconds: float
    drafting_s: float
    energy_j: float
    """Dynamic energy of GPUs and links, J."""


PassPrice = Callable[[float, float, float], tuple[float, float]]
"""From a pass's three sums (`speclab.model.cost`) to its seconds and joules, all-reduces not included."""


class Pricing:
    """Prices the steps of one `StepCost` that either read prompts or write tokens.

    Parameters
    ----------
    cost : StepCost
        What is priced.
    """

    def __init__(self, cost: StepCost):
        self._cost = cost
        self._target = _pass_price(cost, cost.target)
        self._drafter = _pass_price(cost, cost.drafter) if cost.drafter else None
        self._reduce_target = _reduce(cost, cost.target)
        reduces = cost.draft_all_reduce and cost.drafter is not None
        self._reduce_drafter = _reduce(cost, cost.drafter) if reduces and cost.drafter else None

    def prefill(self, tokens: int, attended: float) -> Price:
        """Return the price of reading prompts of `tokens` tokens in all."""
        cost = self._cost
        seconds, joules = self._target(tokens, attended, tokens)
        if self._reduce_target:
            more_s, more_j = self._reduce_target(tokens)
            seconds, joules = seconds + more_s, joules + more_j
        seconds += cost.overhead_s
        drafting_s, drafting_j = self._draft(tokens, attended, tokens) if self._drafter and cost.k else (0.0, 0.0)
        return Price(seconds + drafting_s + cost.host_s, drafting_s, joules + drafting_j)

    def decode(self, count: int, context: int, drafted: int, drafted_context: int) -> Price:
        """Return the price of one pass over rows (see `speclab.model.step.Rows`)."""
        cost = self._cost
        k = cost.k
        tokens = count + k * drafted
        attended = context + count + k * drafted_context + drafted * ((k + 1) * (k + 2) / 2 - 1)
        seconds, joules = self._target(tokens, attended, context + tokens)
        if self._reduce_target:
            more_s, more_j = self._reduce_target(tokens)
            seconds, joules = seconds + more_s, joules + more_j
        seconds += cost.overhead_s
        drafting_s = drafting_j = 0.0
        if drafted:
            if self._drafter is None:
                for _ in range(k):
                    drafting_s += cost.floor_s
            else:
                cached = drafted_context
                for _ in range(k):
                    cached += drafted
                    more_s, more_j = self._draft(drafted, cached, cached)
                    drafting_s += more_s
                    drafting_j += more_j
        return Price(seconds + drafting_s + cost.host_s, drafting_s, joules + drafting_j)

    def _draft(self, tokens: int, attended: float, kv_tokens: int) -> tuple[float, float]:
        assert self._drafter is not None
        cost = self._cost
        seconds, joules = self._drafter(tokens, attended, kv_tokens)
        seconds = (cost.floor_s if cost.floor_s > seconds else seconds) + cost.draft_overhead_s
        if self._reduce_drafter:
            more_s, more_j = self._reduce_drafter(tokens)
            return seconds + more_s, joules + more_j
        return seconds, joules


def _pass_price(cost: StepCost, shape: Transformer) -> PassPrice:
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
        if joules <= budget_w * seconds:
            return seconds, joules
        timed = pass_time(device, Work(flops, size))  # held back by the power limit
        return timed.seconds, timed.energy_j

    return price


def _reduce(cost: StepCost, shape: Transformer) -> Callable[[int], tuple[float, float]] | None:
    gpus, link = cost.device.gpus, cost.device.link
    if gpus == 1 or link is None:
        return None
    times, bytes_a_token = 2 * shape.layers, shape.width * BYTES_PER_VALUE

    def price(tokens: int) -> tuple[float, float]:
        size = tokens * bytes_a_token
        return times * link.all_reduce_s(gpus, size), times * link.all_reduce_j(gpus, size)

    return price
