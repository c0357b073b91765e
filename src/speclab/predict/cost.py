"""What a million tokens cost in dollars and joules, at the pace of a predicted step.

Prices, power at rest and energy per operation and byte are those of `speclab.roofline.devices`, which its source calls
illustrative. Energy follows the operations and bytes of a step, time follows the calibrated one: a slower step costs
more at rest and no more in arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from speclab.predict.prediction import Question
from speclab.predict.traffic import Traffic
from speclab.roofline.devices import Device
from speclab.roofline.forward_pass import work
from speclab.roofline.transformers import Transformer

Floats = NDArray[np.float64]
MILLION = 1e6


@dataclass(frozen=True, slots=True)
class TokenCost:
    """Cost of a million tokens, an entry for each number of rows.

    Attributes
    ----------
    joules : list of float
        Energy of the GPU, J.
    usd : list of float or None
        Dollars; None where the device has no price.
    """

    joules: list[float]
    usd: list[float] | None


def token_cost(device: Device, question: Question, rows: ArrayLike, step_s: ArrayLike, k: int) -> TokenCost:
    """Return what a million tokens cost with k draft positions, 0 for the baseline.

    Parameters
    ----------
    device : Device
        Its price and power.
    question : Question
        Models, acceptance, traffic.
    rows, step_s : array_like, shape (n,)
        Rows of a step, and its predicted time, s.
    k : int
        Draft positions.
    """
    batch, seconds = np.asarray(rows, dtype=np.float64), np.asarray(step_s, dtype=np.float64)
    draft, tokens = question.at(k)
    written = batch * tokens
    positions = 1 + k * draft.draft_rate
    energy = _joules(device, question.target, batch, positions, question.traffic, written)
    if k and draft.shape is not None:
        energy = energy + _joules(device, draft.shape, batch, positions, question.traffic, written)
        energy = energy + (k - 1) * _joules(device, draft.shape, batch, 1.0, question.traffic, 0 * written)
    joules = (energy + device.idle_w * seconds) / written * MILLION
    usd = None if device.usd_per_hour is None else device.usd_per_hour / 3600 * seconds / written * MILLION
    return TokenCost(joules.tolist(), None if usd is None else usd.tolist())


def _joules(
    device: Device, shape: Transformer, batch: Floats, positions: float, traffic: Traffic, written: Floats
) -> Floats:
    tokens, prompts = batch * positions, written * traffic.prompts_per_token
    attended = tokens * (traffic.context + (positions + 1) / 2)
    asked = work(shape, tokens + prompts, attended, batch * traffic.context + tokens + prompts)
    return np.asarray(1e-12 * (asked.flops * device.pj_per_flop + asked.bytes * device.pj_per_byte), dtype=np.float64)
