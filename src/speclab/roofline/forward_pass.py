"""Operations, bytes and time of one forward pass: a roofline with a power limit.

A pass is any mix of rows; row i runs c_i new positions on top of C_i cached tokens. Decode is c = 1, verifying k
drafts is c = k + 1, a prompt is C = 0. Three sums describe the whole pass, whatever its
number of rows:

- ``tokens``: sum of c_i,
- ``attended``: sum of c_i (2 C_i + c_i + 1) / 2, the pairs of a query and a key,
- ``kv_tokens``: sum of C_i + c_i, the cache that is read and written.

The equations are those of the public site *inference-tradeoffs-explained* and its simulator
*Disaggregated_Inference_Sim*. The LM head is charged at every position, prompts included. One device; efficiency does
not depend on shape; nothing here was measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from speclab.roofline.devices import Device
from speclab.roofline.transformers import BYTES_PER_VALUE, Transformer

Bound = Literal["memory", "compute", "power"]
Floats = NDArray[np.float64]
NumberT = TypeVar("NumberT", float, Floats)

LOWEST_CLOCK = 0.4
"""Share of the full clock below which the power limit does not push it."""


@dataclass(frozen=True, slots=True)
class Work(Generic[NumberT]):
    """What a pass asks of the device: floats, or arrays that broadcast, for many passes at once.

    Attributes
    ----------
    flops : float or ndarray
        Operations, FLOP.
    bytes : float or ndarray
        Traffic to and from memory, byte.
    """

    flops: NumberT
    bytes: NumberT


class PassTime(NamedTuple):
    """Time of one pass and what set it."""

    seconds: float
    bound: Bound
    compute_s: float
    """Time of the operations alone at full clock, s."""
    memory_s: float
    """Time of the memory traffic alone, s."""
    clock: float
    """Share of the full clock that the power limit left."""
    energy_j: float
    """Dynamic energy, J; power at rest not included."""


def work(shape: Transformer, tokens: NumberT, attended: NumberT, kv_tokens: NumberT) -> Work[NumberT]:
    """Return the work of any pass from its three sums (module docstring).

    Weights are read once, whatever the batch, and one row of the embedding for each token.
    """
    flops = 2 * shape.matmul_parameters * tokens + 4 * shape.layers * shape.width * attended
    weights = BYTES_PER_VALUE * (shape.matmul_parameters + tokens * shape.width)
    return Work(flops, weights + kv_tokens * shape.kv_bytes_per_token)


def prefill(shape: Transformer, prompt: NumberT, prompts: NumberT) -> Work[NumberT]:
    """Return the work of prefilling `prompts` prompts of `prompt` tokens each in one pass."""
    tokens = prompt * prompts
    return work(shape, tokens, tokens * (prompt + 1) / 2, tokens)


def decode(shape: Transformer, batch: NumberT, cached: NumberT) -> Work[NumberT]:
    """Return the work of one new token in each of `batch` rows with `cached` tokens of context in all rows together."""
    return work(shape, batch, cached + batch, cached + batch)


def verify(shape: Transformer, batch: NumberT, cached: NumberT, k: int) -> Work[NumberT]:
    """Return the work of k drafts and one more position in each of `batch` rows, `cached` tokens in all rows together.

    With k = 0 it is `decode`.
    """
    positions = k + 1
    attended = positions * (2 * cached + batch * (positions + 1)) / 2
    return work(shape, batch * positions, attended, cached + batch * positions)


def pass_time(device: Device, work: Work[float]) -> PassTime:
    """Return the time of one pass: the longer of compute and memory, stretched where the power limit asks for it.

    Under the limit the compute clock falls; compute time goes as 1/clock, energy per operation as its square, memory
    is unaffected. Below `LOWEST_CLOCK` the whole pass is stretched instead. Launch overhead is not included.
    """
    compute_s = work.flops / device.flop_per_s
    memory_s = work.bytes / device.byte_per_s
    compute_j = work.flops * device.pj_per_flop * 1e-12
    memory_j = work.bytes * device.pj_per_byte * 1e-12
    budget_w = device.dynamic_power_w
    seconds = max(compute_s, memory_s)
    if compute_j + memory_j <= budget_w * seconds:
        bound: Bound = "compute" if compute_s >= memory_s else "memory"
        return PassTime(seconds, bound, compute_s, memory_s, 1.0, compute_j + memory_j)
    clock = _clock_within(budget_w, compute_s, memory_s, compute_j, memory_j)
    energy_j = compute_j * clock**2 + memory_j
    seconds = max(compute_s / clock, memory_s, energy_j / budget_w)
    return PassTime(seconds, "power", compute_s, memory_s, clock, energy_j)


def pass_seconds(device: Device, work: Work[Floats]) -> Floats:
    """Return the times of many passes, s; the array form of `pass_time`, shaped as the two arrays broadcast."""
    flops, size = np.broadcast_arrays(work.flops, work.bytes)
    seconds = np.maximum(flops / device.flop_per_s, size / device.byte_per_s)
    joules = flops * device.pj_per_flop * 1e-12 + size * device.pj_per_byte * 1e-12
    held_back = np.flatnonzero(joules > device.dynamic_power_w * seconds)
    for index in held_back:  # the power limit needs a cubic's root, whose last bits differ in array arithmetic
        seconds.flat[index] = pass_time(device, Work(float(flops.flat[index]), float(size.flat[index]))).seconds
    return np.asarray(seconds, dtype=np.float64)


def _clock_within(budget_w: float, compute_s: float, memory_s: float, compute_j: float, memory_j: float) -> float:
    """Return the highest clock at which the pass stays within the power budget, not below the lowest."""
    spare = (budget_w * memory_s - memory_j) / compute_j
    if spare > 0 and math.sqrt(spare) * memory_s >= compute_s:
        clock = math.sqrt(spare)  # memory still sets the time
    else:
        # compute sets the time: clock^3 + p clock = q has one real root for p > 0 (Cardano)
        p, q = memory_j / compute_j, budget_w * compute_s / compute_j
        root = math.cbrt(q / 2 + math.sqrt(q * q / 4 + p**3 / 27))
        clock = root - p / (3 * root)
    return min(1.0, max(LOWEST_CLOCK, clock))
