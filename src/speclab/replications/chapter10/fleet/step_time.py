"""The time and energy of one pass, with everything that does not change precomputed.

`StepModel` says what a step takes; a simulation asks it a million times. This is the same arithmetic in the same order,
so that both agree to the last bit (a test holds them together).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from speclab.roofline.forward_pass import Work, pass_time
from speclab.roofline.step import StepModel
from speclab.roofline.transformers import BYTES_PER_VALUE, Transformer


class TimeAndEnergy(NamedTuple):
    """Time and energy of one step."""

    seconds: float
    drafting_s: float
    energy_j: float
    """Dynamic energy of GPUs and links, J."""


PassFunction = Callable[[float, float, float], tuple[float, float]]
"""From a pass's three sums (`speclab.roofline.forward_pass`) to its seconds and joules."""


class PrecomputedSteps:
    """Times the steps of one `StepModel` that either read prompts or write tokens.

    Parameters
    ----------
    model : StepModel
        What is timed.
    """

    def __init__(self, model: StepModel):
        self._k, self._floors_s = model.k, 0.0
        for _ in range(model.k):  # a sum of k floors, not a product: they differ in the last bit
            self._floors_s += model.floor_s
        self._overhead_s, self._host_s = model.overhead_s, model.host_s
        self._beyond_last = (model.k + 1) * (model.k + 2) / 2 - 1
        self._target = _pass_function(model, model.target, reduces=True)
        self._drafter = _draft_function(model)

    def prefill(self, tokens: int, attended: float) -> TimeAndEnergy:
        """Return the time and energy of reading prompts of `tokens` tokens in all."""
        seconds, joules = self._target(tokens, attended, tokens)
        drafting_s = drafting_j = 0.0
        if self._drafter is not None:
            drafting_s, drafting_j = self._drafter(tokens, attended, tokens)
        return TimeAndEnergy(seconds + self._overhead_s + drafting_s + self._host_s, drafting_s, joules + drafting_j)

    def decode(self, count: int, context: int, drafted: int, drafted_context: int) -> TimeAndEnergy:
        """Return the time and energy of one pass over rows (see `speclab.roofline.step.Rows`)."""
        k, drafter = self._k, self._drafter
        tokens = count + k * drafted
        attended = context + count + k * drafted_context + drafted * self._beyond_last
        seconds, joules = self._target(tokens, attended, context + tokens)
        drafting_s = 0.0
        if drafted and drafter is None:
            drafting_s = self._floors_s
        elif drafted and drafter is not None:
            for cached in range(drafted_context + drafted, drafted_context + k * drafted + 1, drafted):
                more_s, more_j = drafter(drafted, cached, cached)
                drafting_s += more_s
                joules += more_j
        return TimeAndEnergy(seconds + self._overhead_s + drafting_s + self._host_s, drafting_s, joules)


def _draft_function(model: StepModel) -> PassFunction | None:
    if model.drafter is None:
        return None
    return _pass_function(
        model, model.drafter, reduces=model.draft_all_reduce, floor_s=model.floor_s, overhead_s=model.draft_overhead_s
    )


def _pass_function(
    model: StepModel, shape: Transformer, *, reduces: bool, floor_s: float = 0.0, overhead_s: float = 0.0
) -> PassFunction:
    device = model.device
    flop_per_s, byte_per_s, budget_w = device.flop_per_s, device.byte_per_s, device.dynamic_power_w
    pj_per_flop, pj_per_byte = device.pj_per_flop, device.pj_per_byte
    flops_a_token, flops_a_pair = 2 * shape.matmul_parameters, 4 * shape.layers * shape.width
    weights = BYTES_PER_VALUE * shape.matmul_parameters
    bytes_a_token, bytes_cached = BYTES_PER_VALUE * shape.width, shape.kv_bytes_per_token

    def roofline(tokens: float, attended: float, kv_tokens: float) -> tuple[float, float]:
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
        seconds, joules = roofline(tokens, attended, kv_tokens)
        seconds = (seconds if seconds > floor_s else floor_s) + overhead_s
        if reduces and link is not None and gpus > 1:
            size = tokens * bytes_a_token
            return (
                seconds + times * link.all_reduce_s(gpus, size),
                joules + times * link.all_reduce_j(gpus, size),
            )
        return seconds, joules

    return charged if floor_s or overhead_s or (reduces and gpus > 1) else roofline
