"""The EAGLE-3 head: its network as vLLM runs it, and several successive draft steps.

Position i reads the target's states there and the embedding of token i + 1, and drafts token i + 2. A later draft step
reads its own last state instead of the target's; it attends to the keys of the first step up to position i and to
those of its own steps, at their positions ("training-time test": Li et al. 2025, arXiv:2503.01840; names and order as
in vLLM's ``llama_eagle3.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding, linear, silu

from speclab.drafters.batches import Batch
from speclab.drafters.llama import Shape, TargetNetwork, Weights, rms_norm, rotated, rotation

LAYER = "midlayer."


@dataclass(frozen=True, slots=True)
class Head:
    """A head in training.

    Attributes
    ----------
    shape : Shape
        The target's.
    weights : Weights
        float32, by the names of the checkpoint.
    draft_ids : Tensor
        [draft vocabulary], int64, rising: the target's token of each draft token.
    reads : tuple[int, ...]
        Which of the corpus's kept layers it reads, by position.
    """

    shape: Shape
    weights: Weights
    draft_ids: Tensor
    reads: tuple[int, ...]


def initial(target: TargetNetwork, last_layer: Weights, draft_ids: Tensor, reads: tuple[int, ...], seed: int) -> Head:
    """Return a head that starts from the target: its last layer, its norm and the rows of its output matrix.

    Parameters
    ----------
    target : TargetNetwork
        The network that the head drafts for.
    last_layer : Weights
        The target's last layer by transformers' names, without a prefix.
    draft_ids : Tensor
        Tokens that it can draft.
    reads : tuple[int, ...]
        As in `Head`.
    seed : int
        Seed of the weights that read embeddings, which the target has no counterpart of.
    """
    shape, generator = target.shape, torch.Generator().manual_seed(seed)
    weights = {f"{LAYER}{name}": tensor.float() for name, tensor in last_layer.items()}
    for name in ("q_proj", "k_proj", "v_proj"):
        key = f"{LAYER}self_attn.{name}.weight"
        of_embeddings = 0.01 * torch.randn(weights[key].shape, generator=generator)
        weights[key] = torch.cat((of_embeddings, weights[key]), dim=1)
    weights[f"{LAYER}hidden_norm.weight"] = weights[f"{LAYER}input_layernorm.weight"].clone()
    weights[f"{LAYER}input_layernorm.weight"] = torch.ones(shape.hidden)
    nothing = torch.zeros(shape.hidden, (len(reads) - 1) * shape.hidden)
    weights["fc.weight"] = torch.cat((nothing, torch.eye(shape.hidden)), dim=1)
    weights["norm.weight"] = target.norm.float()
    weights["lm_head.weight"] = target.head[draft_ids].float()
    return Head(shape, {name: tensor.contiguous() for name, tensor in weights.items()}, draft_ids, reads)


class Unrolled:
    """A head over one batch, draft step by draft step.

    Parameters
    ----------
    head : Head
        Its weights are used in the type of the batch's states; gradients arrive at the float32 ones.
    embeddings : Tensor
        The target's, [vocabulary, hidden].
    batch : Batch
        Sequences.
    roots : Tensor
        [roots], positions in the flattened [rows x length] that are drafted from.
    """

    def __init__(self, head: Head, embeddings: Tensor, batch: Batch, roots: Tensor):
        self.shape, self._embeddings, self._tokens = head.shape, embeddings, batch.tokens
        self._w = {name: tensor.to(batch.states.dtype) for name, tensor in head.weights.items()}
        self.roots, self._depth = roots, 0
        self._keys: list[tuple[Tensor, Tensor]] = []
        read = linear(batch.states[:, :, list(head.reads)].flatten(2), self._w["fc.weight"])
        everywhere = torch.arange(batch.tokens.numel())
        self._keys.append(self._keys_of(self._input(read.flatten(0, 1), everywhere), everywhere))
        self._states = read.flatten(0, 1)[roots]

    @property
    def head_weight(self) -> Tensor:
        """The output matrix in the type of the batch's states, [draft vocabulary, hidden]."""
        return self._w["lm_head.weight"]

    def step(self) -> Tensor:
        """Draft one more token at each root; return the normed states it is drafted from, [roots, hidden]."""
        x = self._input(self._states, self.roots)
        if self._depth:
            self._keys.append(self._keys_of(x, self.roots))
        width = self.shape.head_width
        q = linear(x, self._w[f"{LAYER}self_attn.q_proj.weight"]).unflatten(-1, (-1, width))
        seen = self._attended(rotated(q, rotation(self.roots % self._tokens.shape[1] + self._depth, self.shape)))
        states = self._states + linear(seen, self._w[f"{LAYER}self_attn.o_proj.weight"])
        between = rms_norm(states, self._w[f"{LAYER}post_attention_layernorm.weight"], self.shape.epsilon)
        gate, up = (linear(between, self._w[f"{LAYER}mlp.{name}_proj.weight"]) for name in ("gate", "up"))
        self._states = states + linear(silu(gate) * up, self._w[f"{LAYER}mlp.down_proj.weight"])
        self._depth += 1
        return rms_norm(self._states, self._w["norm.weight"], self.shape.epsilon)

    def keep(self, which: Tensor) -> None:
        """Continue with some of the roots only: `which` is a mask over them."""
        self.roots, self._states = self.roots[which], self._states[which]

    def _input(self, states: Tensor, places: Tensor) -> Tensor:
        """Return normed embeddings of the tokens after `places`, and normed states, side by side."""
        tokens = self._tokens.flatten()[(places + 1 + self._depth).clamp(max=self._tokens.numel() - 1)]
        embedded = rms_norm(embedding(tokens, self._embeddings), self._w[f"{LAYER}input_layernorm.weight"],
                            self.shape.epsilon)  # fmt: skip
        return torch.cat((embedded, rms_norm(states, self._w[f"{LAYER}hidden_norm.weight"], self.shape.epsilon)), -1)

    def _keys_of(self, x: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values [rows, kv_heads, length, head_width], 0 where there is no root."""
        width, (rows, length) = self.shape.head_width, self._tokens.shape
        k, v = (linear(x, self._w[f"{LAYER}self_attn.{name}_proj.weight"]).unflatten(-1, (-1, width)) for name in "kv")
        k = rotated(k, rotation(places % length + self._depth, self.shape))
        dense = []
        for part in (k, v):
            whole = part.new_zeros(rows * length, *part.shape[1:]).index_put((places,), part)
            dense.append(whole.unflatten(0, (rows, length)).transpose(1, 2))
        return dense[0], dense[1]

    def _attended(self, q: Tensor) -> Tensor:
        """Return what queries [roots, heads, head_width] attend to, [roots, heads x head_width]."""
        (rows, length), width = self._tokens.shape, self.shape.head_width
        whole = q.new_zeros(rows * length, *q.shape[1:]).index_put((self.roots,), q)
        # heads that share a key are adjacent: [rows, kv_heads, group, length, head_width]
        grouped = whole.unflatten(0, (rows, length)).unflatten(2, (self.shape.kv_heads, -1)).permute(0, 2, 3, 1, 4)
        (keys, values), later = self._keys[0], self._keys[1:]
        shared = grouped.flatten(2, 3) @ keys.transpose(2, 3)
        shared = shared.unflatten(2, (-1, length)).float() * width**-0.5
        ahead = torch.ones(length, length, dtype=torch.bool).triu(1)
        scores = [shared.masked_fill(ahead, -torch.inf)]
        scores += [((grouped * k.unsqueeze(2)).sum(-1, keepdim=True)).float() * width**-0.5 for k, _ in later]
        shares = torch.cat(scores, -1).softmax(-1).to(q.dtype)
        seen = (shares[..., :length].flatten(2, 3) @ values).unflatten(2, (-1, length))
        for number, (_, v) in enumerate(later):
            seen = seen + shares[..., length + number, None] * v.unsqueeze(2)
        return seen.permute(0, 3, 1, 2, 4).flatten(0, 1).flatten(1)[self.roots]
