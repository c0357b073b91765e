"""One pass of a Llama, or of an EAGLE-3 head, over a batch whose context is cached: what an engine runs in a step.

The projections that an engine fuses are fused here (q, k and v; gate and up). The rest of an engine is not here: pages
of the cache, kernels that fuse norms, rotation and gate, the scheduler, sampling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from speclab.probe.attention import Attend
from speclab.roofline.transformers import Transformer

NORM_EPSILON = 1e-5
ROTATION_BASE = 10_000.0
BLOCK = 2**22
"""Random values that are drawn; more are made by repeating them, since only their time counts."""


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """Weights of one layer, each of shape (outputs, inputs); `qkv` and `gate_up` hold theirs one above the other."""

    input_norm: Any
    qkv: Any
    output: Any
    feed_norm: Any
    gate_up: Any
    down: Any


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of a model; `fuse` and `state_norm` only in an EAGLE-3 head."""

    embedding: Any
    layers: tuple[LayerWeights, ...]
    norm: Any
    head: Any
    fuse: Any = None
    state_norm: Any = None


@dataclass(frozen=True, slots=True)
class PassInput:
    """What one pass reads and writes.

    Attributes
    ----------
    ids : tensor of int64, shape (rows, positions)
        The new tokens.
    cache : sequence of (keys, values), each of shape (rows, KV heads, context + positions, head width)
        One pair a layer; its last `positions` are written by the pass.
    cos, sin : tensor, shape (positions, 1, head width)
        Rotation of the new positions.
    attend : callable
        One of `speclab.probe.attention`.
    states : tensor, shape (rows * positions, 3 * width), optional
        What an EAGLE-3 head reads of its target.
    """

    ids: Any
    cache: tuple[tuple[Any, Any], ...]
    cos: Any
    sin: Any
    attend: Attend
    states: Any = None


def run(shape: Transformer, weights: Weights, batch: PassInput, epsilon: float = NORM_EPSILON) -> Any:
    """Return the logits of one pass, shape (rows * positions, vocabulary), and write its keys and values to the cache.

    Parameters
    ----------
    shape : Transformer
        The model as it is run, its layers those of `weights`.
    weights, batch : Weights, PassInput
        On one device and of one number format.
    epsilon : float
        Of the norms.
    """
    new = functional.embedding(batch.ids.flatten(), weights.embedding)
    hidden = new if weights.fuse is None else functional.linear(batch.states, weights.fuse)
    for layer, (keys, values) in zip(weights.layers, batch.cache, strict=True):
        normed = _norm(hidden, layer.input_norm if weights.fuse is None else weights.state_norm, epsilon)
        if weights.fuse is not None:
            normed = torch.cat((_norm(new, layer.input_norm, epsilon), normed), dim=-1)
        hidden = hidden + functional.linear(_attention(shape, batch, layer, normed, keys, values), layer.output)
        gate, up = functional.linear(_norm(hidden, layer.feed_norm, epsilon), layer.gate_up).chunk(2, dim=-1)
        hidden = hidden + functional.linear(functional.silu(gate) * up, layer.down)
    return functional.linear(_norm(hidden, weights.norm, epsilon), weights.head)


def random_weights(shape: Transformer, dtype: Any, device: Any) -> Weights:
    """Return weights of random values for a shape; about 0.02 in size, as an untrained model's are."""
    fill = Filler(dtype, device)
    width, kv = shape.width, shape.kv_width

    def ones() -> Any:
        return torch.ones(width, dtype=dtype, device=device)

    layers = tuple(
        LayerWeights(
            ones(),
            fill(width + 2 * kv, shape.attention_inputs * width),
            fill(width, width),
            ones(),
            fill(2 * shape.ff_width, width),
            fill(width, shape.ff_width),
        )
        for _ in range(shape.layers)
    )
    fused = shape.fused_states > 0
    return Weights(
        fill(shape.vocabulary, width),
        layers,
        ones(),
        fill(shape.output_vocabulary or shape.vocabulary, width),
        fill(width, shape.fused_states * width) if fused else None,
        ones() if fused else None,
    )


class Filler:
    """Makes tensors of random values quickly, by repeating one block of normal values of size 0.02."""

    def __init__(self, dtype: Any, device: Any) -> None:
        generator = torch.Generator().manual_seed(9)
        self._block = (0.02 * torch.randn(BLOCK, generator=generator)).to(device=device, dtype=dtype)

    def __call__(self, *shape: int) -> Any:
        """Return a tensor of a shape."""
        tensor = torch.empty(shape, dtype=self._block.dtype, device=self._block.device)
        for piece in tensor.view(-1).split(BLOCK):
            piece.copy_(self._block[: len(piece)])
        return tensor


def rotation(context: int, positions: int, width: int, dtype: Any, device: Any, base: float = ROTATION_BASE) -> Any:
    """Return cosines and sines of positions ``context`` to ``context + positions - 1`` for heads of a width."""
    speeds = base ** (-torch.arange(0, width, 2, dtype=torch.float64, device=device) / width)
    angles = torch.arange(context, context + positions, device=device)[:, None] * speeds
    both = torch.cat((angles, angles), dim=-1)[:, None]
    return both.cos().to(dtype), both.sin().to(dtype)


def _attention(shape: Transformer, batch: PassInput, layer: LayerWeights, normed: Any, keys: Any, values: Any) -> Any:
    rows, positions = batch.ids.shape
    width = shape.width // shape.heads
    qkv = functional.linear(normed, layer.qkv).view(rows, positions, -1, width)
    rotated = _rotated(qkv[:, :, : shape.heads + shape.kv_heads], batch.cos, batch.sin)
    queries, new_keys = rotated.split((shape.heads, shape.kv_heads), dim=2)
    keys[:, :, -positions:].copy_(new_keys.transpose(1, 2))
    values[:, :, -positions:].copy_(qkv[:, :, shape.heads + shape.kv_heads :].transpose(1, 2))
    attended = batch.attend(queries.transpose(1, 2), keys, values)
    return attended.transpose(1, 2).reshape(rows * positions, shape.width)


def _rotated(heads: Any, cos: Any, sin: Any) -> Any:
    first, second = heads.chunk(2, dim=-1)
    return torch.addcmul(heads * cos, torch.cat((-second, first), dim=-1), sin)


def _norm(values: Any, weight: Any, epsilon: float) -> Any:
    return functional.rms_norm(values, weight.shape, weight, epsilon)
