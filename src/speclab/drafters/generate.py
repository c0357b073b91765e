"""Let the target write many answers at once, and keep its hidden states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from speclab.drafters.llama import TargetNetwork, embedded, one_token, over_sequences

Cache = tuple[Tensor, Tensor]
"""Keys and values of one layer, [rows, kv_heads, capacity, head_width] each."""

PREFILL_TOKENS = 2048
"""Prompt tokens, padding included, that are read at once."""
GROW_BY = 32
"""Tokens by which caches grow."""
SHRINK_AT = 0.8
"""Finished rows are dropped when no more than this share of the rows is still writing."""


@dataclass(frozen=True, slots=True)
class Chance:
    """How tokens are drawn; without it the likeliest is taken."""

    temperature: float
    top: int
    generator: torch.Generator


@dataclass(frozen=True, slots=True)
class GeneratedRow:
    """One row: prompt and answer.

    Attributes
    ----------
    tokens : Tensor
        [length], int64.
    prompt : int
        How many of them are the prompt's.
    states : Tensor
        [length - 1, kept layers, hidden], bfloat16: the last token was never read. Empty if none was requested.
    """

    tokens: Tensor
    prompt: int
    states: Tensor


@torch.inference_mode()
def write(
    target: TargetNetwork,
    prompts: Sequence[Sequence[int]],
    *,
    most: int,
    stops: Sequence[int],
    keep: Sequence[int] = (),
    chance: Chance | None = None,
) -> list[GeneratedRow]:
    """Return each prompt with what the target writes after it.

    Parameters
    ----------
    target : TargetNetwork
        The network.
    prompts : sequence of sequence of int
        Tokens, at least one each. Prompts of similar length take the least work.
    most : int
        Tokens of an answer at most.
    stops : sequence of int
        Tokens that end an answer; they are part of it.
    keep : sequence of int
        Numbers of layers after which the residual stream is kept, un-normed: 0 is the embeddings.
    chance : Chance, optional
        How to draw; greedy by default.
    """
    rows, shape = len(prompts), target.shape
    lengths = torch.tensor([len(prompt) for prompt in prompts])
    longest = int(lengths.max()) + most
    tokens = torch.zeros(rows, longest, dtype=torch.int64)
    for row, prompt in enumerate(prompts):
        tokens[row, : len(prompt)] = torch.tensor(list(prompt))
    states = torch.zeros(rows, longest if keep else 0, len(keep), shape.hidden, dtype=torch.bfloat16)
    size = (2, rows, shape.kv_heads, int(lengths.max()) + GROW_BY, shape.head_width)
    caches: list[Cache] = [tuple(torch.zeros(size, dtype=torch.bfloat16)) for _ in target.layers]
    last = _read_prompts(target, tokens, lengths, states, keep, caches)

    stop_set, ends = torch.tensor(list(stops)), lengths.clone()
    row_of, going = torch.arange(rows), torch.ones(rows, dtype=torch.bool)
    while True:
        fresh, writing = _chosen(target.logits(last), chance), row_of[going]
        tokens[writing, ends[writing]] = fresh[going]
        ends[writing] += 1
        going &= ~torch.isin(fresh, stop_set) & (ends[row_of] < lengths[row_of] + most)
        if not going.any():
            break
        if going.sum() <= SHRINK_AT * len(going):
            for index, (keys, values) in enumerate(caches):
                caches[index] = keys[going], values[going]
            row_of, going = row_of[going], going[going]
        if int(ends.max()) > caches[0][0].shape[2]:
            for index, (keys, values) in enumerate(caches):
                caches[index] = _grown(keys), _grown(values)
        at = ends[row_of] - 1  # a finished row reads its last token again, which is ignored
        last = _read_token(target, tokens[row_of, at], row_of, at, states, keep, caches)
    return [
        GeneratedRow(tokens[row, : ends[row]], len(prompts[row]), states[row, : ends[row] - 1]) for row in range(rows)
    ]


def _grown(cache: Tensor) -> Tensor:
    return torch.cat((cache, torch.zeros_like(cache[:, :, :GROW_BY])), dim=2)


def _read_prompts(
    target: TargetNetwork, tokens: Tensor, lengths: Tensor, states: Tensor, keep: Sequence[int], caches: list[Cache]
) -> Tensor:
    """Fill caches and states with the prompts; return the last layer's state of each prompt's last token."""
    last = torch.zeros(len(tokens), target.shape.hidden, dtype=torch.bfloat16)
    for rows in _alike(lengths):
        longest = int(lengths[rows].max())
        x = embedded(target, tokens[rows, :longest])
        for depth, layer in enumerate(target.layers):
            _keep(x, depth, keep, states, (rows.unsqueeze(1), torch.arange(longest)))
            x, k, v = over_sequences(layer, x, target.shape)
            keys, values = caches[depth]
            keys[rows, :, :longest], values[rows, :, :longest] = k, v
        _keep(x, target.shape.layers, keep, states, (rows.unsqueeze(1), torch.arange(longest)))
        last[rows] = x[torch.arange(len(rows)), lengths[rows] - 1]
    return last


def _read_token(
    target: TargetNetwork,
    fresh: Tensor,
    row_of: Tensor,
    at: Tensor,
    states: Tensor,
    keep: Sequence[int],
    caches: list[Cache],
) -> Tensor:
    x = embedded(target, fresh)
    for depth, layer in enumerate(target.layers):
        _keep(x, depth, keep, states, (row_of, at))
        x = one_token(layer, x, target.shape, *caches[depth], at)
    _keep(x, target.shape.layers, keep, states, (row_of, at))
    return x


def _keep(x: Tensor, depth: int, keep: Sequence[int], states: Tensor, at: tuple[Tensor, Tensor]) -> None:
    if depth in keep:
        states[(*at, list(keep).index(depth))] = x


def _alike(lengths: Tensor) -> list[Tensor]:
    """Return groups of rows of similar length, none over `PREFILL_TOKENS` with its padding."""
    order = lengths.argsort(stable=True)
    groups: list[list[int]] = [[]]
    for row in order.tolist():
        if groups[-1] and (len(groups[-1]) + 1) * int(lengths[row]) > PREFILL_TOKENS:
            groups.append([])
        groups[-1].append(row)
    return [torch.tensor(group) for group in groups]


def _chosen(logits: Tensor, chance: Chance | None) -> Tensor:
    if chance is None:
        return logits.argmax(-1)
    best, ids = logits.topk(chance.top, dim=-1)
    drawn = torch.multinomial((best / chance.temperature).softmax(-1), 1, generator=chance.generator)
    return ids.gather(1, drawn).squeeze(1)
