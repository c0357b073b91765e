"""How many tokens of KV cache fit beside the weights."""

from __future__ import annotations

import math

from speclab.roofline.devices import Device
from speclab.roofline.transformers import Transformer

USABLE_MEMORY = 0.90
"""Share of a device's memory that weights and KV cache may fill."""


def kv_capacity_tokens(
    device: Device, target: Transformer, drafter: Transformer | None = None, usable: float = USABLE_MEMORY
) -> int:
    """Return how many tokens of KV cache fit on a device (all of its GPUs), cached by the target and by any drafter.

    Activations are not counted. The answer is negative where the weights alone do not fit.
    """
    weight_bytes = target.resident_bytes + (drafter.resident_bytes if drafter else 0)
    per_token = target.kv_bytes_per_token + (drafter.kv_bytes_per_token if drafter else 0)
    return math.floor((usable * device.memory_bytes * device.gpus - weight_bytes) / per_token)
