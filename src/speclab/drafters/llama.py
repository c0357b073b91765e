"""The parts of a Llama-type network that corpus and training share: norm, rotation, one layer, and the target whole.

Plain functions of tensors. transformers' own model is not used for them: its caches grow by copying, which at 256 rows
costs more than the arithmetic, and it returns hidden states only for whole sequences.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn.functional import embedding, linear, scaled_dot_product_attention, silu

Weights = dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a Llama-type network, by the names of this project."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_width: int
    inner: int
    vocabulary: int
    epsilon: float
    theta: float

    @classmethod
    def of(cls, config: dict[str, Any]) -> Shape:
        """Return the shape that a ``config.json`` describes."""
        rotation = config.get("rope_parameters") or {}
        return cls(
            layers=config["num_hidden_layers"],
            hidden=config["hidden_size"],
            heads=config["num_attention_heads"],
            kv_heads=config.get("num_key_value_heads") or config["num_attention_heads"],
            head_width=config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"],
            inner=config["intermediate_size"],
            vocabulary=config["vocab_size"],
            epsilon=config["rms_norm_eps"],
            theta=rotation.get("rope_theta") or config.get("rope_theta") or 10_000.0,
        )


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer's weights; q, k, v and gate, up are stacked, so that each takes one product."""

    before_attention: Tensor
    qkv: Tensor
    out: Tensor
    before_inner: Tensor
    gate_up: Tensor
    down: Tensor


@dataclass(frozen=True, slots=True)
class TargetNetwork:
    """A whole network in bfloat16, ready to run.

    Attributes
    ----------
    embeddings, head : Tensor
        [vocabulary, hidden]; the same tensor where the model ties them.
    norm : Tensor
        [hidden], the last norm.
    """

    shape: Shape
    embeddings: Tensor
    layers: tuple[Layer, ...]
    norm: Tensor
    head: Tensor

    @classmethod
    def load(cls, folder: Path) -> TargetNetwork:
        """Return the model of a folder with ``config.json`` and safetensors files."""
        shape = Shape.of(json.loads((folder / "config.json").read_text(encoding="utf-8")))
        weights = {name: tensor.to(torch.bfloat16) for name, tensor in read_weights(folder).items()}
        return cls.of(shape, weights)

    @classmethod
    def of(cls, shape: Shape, weights: Weights) -> TargetNetwork:
        """Return the model with these weights, by transformers' names."""
        embeddings = weights["model.embed_tokens.weight"]
        layers = tuple(layer_of(weights, f"model.layers.{index}.") for index in range(shape.layers))
        head = weights.get("lm_head.weight", embeddings)
        return cls(shape, embeddings, layers, weights["model.norm.weight"], head)

    def logits(self, states: Tensor) -> Tensor:
        """Return float32 logits [..., vocabulary] of un-normed states after the last layer [..., hidden]."""
        return linear(rms_norm(states, self.norm, self.shape.epsilon), self.head).float()


def read_weights(folder: Path) -> Weights:
    """Return all tensors of a folder's safetensors files."""
    weights: Weights = {}
    for file in sorted(folder.glob("*.safetensors")):
        weights |= load_file(str(file))
    return weights


def layer_of(weights: Weights, prefix: str) -> Layer:
    """Return one layer of a state dict whose names begin with `prefix`."""

    def joined(*names: str) -> Tensor:
        return torch.cat([weights[f"{prefix}{name}.weight"] for name in names])

    return Layer(
        before_attention=weights[f"{prefix}input_layernorm.weight"],
        qkv=joined("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        out=weights[f"{prefix}self_attn.o_proj.weight"],
        before_inner=weights[f"{prefix}post_attention_layernorm.weight"],
        gate_up=joined("mlp.gate_proj", "mlp.up_proj"),
        down=weights[f"{prefix}mlp.down_proj.weight"],
    )


def rms_norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """Return `x` over its root mean square, times `weight`; computed in float32, in x's type."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon)).to(x.dtype) * weight


def rotation(positions: Tensor, shape: Shape) -> tuple[Tensor, Tensor]:
    """Return cosine and sine [..., 1, head_width] (float32) that rotate heads at these positions [...]."""
    steps = torch.arange(0, shape.head_width, 2, dtype=torch.float32) / shape.head_width
    angles = positions.float().unsqueeze(-1) * shape.theta**-steps
    angles = torch.cat((angles, angles), dim=-1).unsqueeze(-2)
    return angles.cos(), angles.sin()


def rotated(heads: Tensor, by: tuple[Tensor, Tensor]) -> Tensor:
    """Return heads [..., heads, head_width] rotated (halves, as transformers and vLLM do)."""
    cosine, sine = by
    first, second = heads.chunk(2, dim=-1)
    turned = torch.cat((-second, first), dim=-1)
    return (heads * cosine + turned * sine).to(heads.dtype)


def split_heads(joined: Tensor, shape: Shape, by: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Return rotated queries, rotated keys and values [..., heads, head_width] of joined projections."""
    widths = [shape.heads * shape.head_width, shape.kv_heads * shape.head_width, shape.kv_heads * shape.head_width]
    q, k, v = (part.unflatten(-1, (-1, shape.head_width)) for part in joined.split(widths, dim=-1))
    return rotated(q, by), rotated(k, by), v


def inner(layer: Layer, x: Tensor, epsilon: float) -> Tensor:
    """Return x plus the layer's gated network on it."""
    gate, up = linear(rms_norm(x, layer.before_inner, epsilon), layer.gate_up).chunk(2, dim=-1)
    return x + linear(silu(gate) * up, layer.down)


def over_sequences(layer: Layer, x: Tensor, shape: Shape) -> tuple[Tensor, Tensor, Tensor]:
    """Run one layer on whole sequences from their first token.

    Parameters
    ----------
    layer : Layer
        Its weights.
    x : Tensor
        [rows, length, hidden]; rows may be padded at their end.
    shape : Shape
        Of the network.

    Returns
    -------
    Tensor, Tensor, Tensor
        The new states like `x`, and keys and values [rows, kv_heads, length, head_width].
    """
    by = rotation(torch.arange(x.shape[1]), shape)
    q, k, v = split_heads(linear(rms_norm(x, layer.before_attention, shape.epsilon), layer.qkv), shape, by)
    q, k, v = (part.transpose(1, 2) for part in (q, k, v))
    seen = scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    x = x + linear(seen.transpose(1, 2).flatten(2), layer.out)
    return inner(layer, x, shape.epsilon), k, v


def one_token(layer: Layer, x: Tensor, shape: Shape, keys: Tensor, values: Tensor, lengths: Tensor) -> Tensor:
    """Run one layer on one new token of each row, and write its key and value into the caches.

    Parameters
    ----------
    layer, shape : Layer, Shape
        The layer's weights and the network's sizes.
    x : Tensor
        [rows, hidden].
    keys, values : Tensor
        Caches [rows, kv_heads, capacity, head_width], contiguous and used whole: torch would copy a part.
    lengths : Tensor
        [rows], tokens of each row that the caches hold already.
    """
    by = rotation(lengths, shape)
    q, k, v = split_heads(linear(rms_norm(x, layer.before_attention, shape.epsilon), layer.qkv), shape, by)
    rows = torch.arange(len(x))
    keys[rows, :, lengths], values[rows, :, lengths] = k, v
    hidden = torch.arange(keys.shape[2]) > lengths.unsqueeze(1)
    grouped = q.unflatten(1, (shape.kv_heads, -1))  # the queries that share a key, as if they were a sequence
    scores = (grouped @ keys.transpose(2, 3)) * shape.head_width**-0.5
    shares = scores.float().masked_fill(hidden[:, None, None], -torch.inf).softmax(-1).to(x.dtype)
    x = x + linear((shares @ values).flatten(1), layer.out)
    return inner(layer, x, shape.epsilon)


def embedded(target: TargetNetwork, tokens: Tensor) -> Tensor:
    """Return the embeddings of tokens [...] as [..., hidden]."""
    return embedding(tokens, target.embeddings)
