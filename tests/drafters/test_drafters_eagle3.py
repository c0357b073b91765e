from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the extra drafters is not installed here")

import torch
from torch.nn.functional import embedding, linear, silu

from speclab.drafters.batches import Batch
from speclab.drafters.eagle3 import Head, Unrolled
from speclab.drafters.llama import Shape, rms_norm, rotated, rotation

SHAPE = Shape(layers=2, hidden=8, heads=4, kv_heads=2, head_width=4, inner=12, vocabulary=20, epsilon=1e-5, theta=1e4)


def a_head(chance: torch.Generator) -> Head:
    shapes = {
        "midlayer.self_attn.q_proj": (16, 16), "midlayer.self_attn.k_proj": (8, 16),
        "midlayer.self_attn.v_proj": (8, 16),
        "midlayer.self_attn.o_proj": (8, 16), "midlayer.mlp.gate_proj": (12, 8), "midlayer.mlp.up_proj": (12, 8),
        "midlayer.mlp.down_proj": (8, 12), "fc": (8, 24), "lm_head": (10, 8),
    }  # fmt: skip
    norms = ("midlayer.input_layernorm", "midlayer.hidden_norm", "midlayer.post_attention_layernorm", "norm")
    weights = {f"{name}.weight": torch.randn(*shape, generator=chance) / 2 for name, shape in shapes.items()}
    weights |= {f"{name}.weight": 1 + 0.1 * torch.randn(8, generator=chance) for name in norms}
    return Head(SHAPE, weights, torch.arange(10), (0, 1, 2))


def as_served(head: Head, embeddings: torch.Tensor, tokens: torch.Tensor, states: torch.Tensor, root: int, steps: int):
    """One draft as a server makes it: token after token, with a cache of keys that grows by one entry a token."""
    w, width = head.weights, SHAPE.head_width
    keys, values = [], []

    def layer(token: int, hidden: torch.Tensor, position: int) -> torch.Tensor:
        x = torch.cat((
            rms_norm(embedding(tokens[token], embeddings), w["midlayer.input_layernorm.weight"], SHAPE.epsilon),
            rms_norm(hidden, w["midlayer.hidden_norm.weight"], SHAPE.epsilon),
        ))  # fmt: skip
        q, k, v = (linear(x, w[f"midlayer.self_attn.{n}_proj.weight"]).view(-1, width) for n in "qkv")
        by = rotation(torch.tensor(position), SHAPE)
        keys.append(rotated(k, by))
        values.append(v)
        q = rotated(q, by)
        heads = []
        for number in range(SHAPE.heads):
            shared = number // (SHAPE.heads // SHAPE.kv_heads)
            scores = torch.stack([q[number] @ k[shared] for k in keys]) / width**0.5
            heads.append(scores.softmax(0) @ torch.stack([v[shared] for v in values]))
        x = hidden + linear(torch.cat(heads), w["midlayer.self_attn.o_proj.weight"])
        y = rms_norm(x, w["midlayer.post_attention_layernorm.weight"], SHAPE.epsilon)
        y = silu(linear(y, w["midlayer.mlp.gate_proj.weight"])) * linear(y, w["midlayer.mlp.up_proj.weight"])
        return x + linear(y, w["midlayer.mlp.down_proj.weight"])

    for position in range(root + 1):
        hidden = layer(position + 1, linear(states[position].flatten(), w["fc.weight"]), position)
    drafted = [hidden]
    for step in range(1, steps):
        hidden = layer(root + 1 + step, hidden, root + step)
        drafted.append(hidden)
    return [rms_norm(each, w["norm.weight"], SHAPE.epsilon) for each in drafted]


def test_training_sees_what_a_server_sees_at_each_draft_step() -> None:
    chance = torch.Generator().manual_seed(1)
    head = a_head(chance)
    embeddings = torch.randn(20, 8, generator=chance)
    tokens = torch.randint(0, 20, (2, 9), generator=chance)
    states = torch.randn(2, 9, 3, 8, generator=chance)
    batch = Batch(tokens, torch.tensor([9, 7]), torch.tensor([3, 2]), states)
    roots = torch.tensor([2, 4, 5, 9 + 1, 9 + 3])
    unrolled = Unrolled(head, embeddings, batch, roots)
    first = unrolled.step()
    unrolled.keep(torch.tensor([True, False, True, True, True]))
    second = unrolled.step()
    unrolled.keep(torch.tensor([True, False, True, True]))
    third = unrolled.step()
    assert unrolled.roots.tolist() == [2, 10, 12]
    for place, found in ((2, (first[0], second[0], third[0])), (10, (first[3], second[2], third[1]))):
        row, root = divmod(place, 9)
        expected = as_served(head, embeddings, tokens[row], states[row], root, 3)
        for got, wanted in zip(found, expected, strict=True):
            torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)
    row, root = divmod(5, 9)
    expected = as_served(head, embeddings, tokens[row], states[row], root, 2)
    torch.testing.assert_close(second[1], expected[1], rtol=1e-4, atol=1e-5)
