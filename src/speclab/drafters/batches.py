"""A corpus as batches of a few sequences of similar length, in an order decided by the step's number."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from speclab.drafters import corpus
from speclab.errors import UserError

POOL = 512
"""Rows among which those of similar length are batched together."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Sequences side by side, padded at their ends.

    Attributes
    ----------
    tokens : Tensor
        [rows, length], int64.
    lengths, prompts : Tensor
        [rows]: tokens of each row, and how many of them are the prompt's.
    states : Tensor
        [rows, length, kept layers, hidden], bfloat16.
    """

    tokens: Tensor
    lengths: Tensor
    prompts: Tensor
    states: Tensor


class CorpusRows:
    """The rows of some shards.

    Parameters
    ----------
    files : sequence of Path
        Shards; their states stay on the disk until a batch needs them.
    keep_out : set of tuple[int, ...]
        Prompts whose rows are left out.
    """

    def __init__(self, files: Sequence[Path], keep_out: Set[tuple[int, ...]] = frozenset()):
        self.files = tuple(files)
        self._shards = [corpus.load(file) for file in files]
        all_places = [(index, *row) for index, shard in enumerate(self._shards) for row in corpus.rows_of(shard)]
        self.places = [place for place in all_places if self._prompt_of(*place) not in keep_out]

    def _prompt_of(self, index: int, start: int, end: int, prompt: int) -> tuple[int, ...]:
        del end
        return tuple(self._shards[index].tokens[start : start + prompt].tolist())

    def asked(self) -> set[tuple[int, ...]]:
        """Return the rows' prompts, as tokens."""
        return {self._prompt_of(*place) for place in self.places}

    def counted(self, vocabulary: int) -> Tensor:
        """Return how often each token occurs in the answers, [vocabulary]."""
        counts = torch.zeros(vocabulary, dtype=torch.int64)
        for index, start, end, prompt in self.places:
            counts += torch.bincount(self._shards[index].tokens[start + prompt : end].long(), minlength=vocabulary)
        return counts

    @property
    def answer_tokens(self) -> int:
        """Tokens of all answers."""
        return sum(end - start - prompt for _, start, end, prompt in self.places)

    def kept(self, layers: Iterable[int]) -> tuple[int, ...]:
        """Return the positions, among the kept layers, of some of the target's layers.

        Raises
        ------
        UserError
            One is not kept, or not in all shards.
        """
        kept_layers = self._shards[0].layers
        for file, shard in zip(self.files, self._shards, strict=True):
            if shard.layers != kept_layers:
                raise UserError(
                    f"keeps states after layers {_listed(shard.layers)}, others after {_listed(kept_layers)}",
                    "move the corpus away and write it again", file=file,
                )  # fmt: skip
        for layer in layers:
            if layer not in kept_layers:
                raise UserError(f"the corpus keeps no states after layer {layer}, only after {_listed(kept_layers)}",
                                "read those, or write another corpus with it in corpus.layers",
                                key="head.layers")  # fmt: skip
        return tuple(kept_layers.index(layer) for layer in layers)

    @property
    def common_start(self) -> int:
        """How many tokens all rows begin with: the chat template's own, which teach nothing."""
        first, *others = (self._shards[index].tokens[start:end].tolist() for index, start, end, _ in self.places)
        common = len(first)
        for other in others:
            common = next((at for at in range(common) if at >= len(other) or other[at] != first[at]), common)
        return common

    def batch(self, chosen: Sequence[int]) -> Batch:
        """Return some rows side by side."""
        places = [self.places[row] for row in chosen]
        lengths = torch.tensor([end - start for _, start, end, _ in places])
        longest = int(lengths.max())
        kept_layers, hidden = self._shards[places[0][0]].states.shape[1:]
        tokens = torch.zeros(len(places), longest, dtype=torch.int64)
        states = torch.zeros(len(places), longest, kept_layers, hidden, dtype=torch.bfloat16)
        for row, (index, start, end, _) in enumerate(places):
            tokens[row, : end - start] = self._shards[index].tokens[start:end]
            states[row, : end - start] = self._shards[index].states[start:end]
        return Batch(tokens, lengths, torch.tensor([prompt for *_, prompt in places]), states)

    def in_order(self, most_tokens: int) -> list[list[int]]:
        """Return the rows in batches, longest last."""
        return self._packed(sorted(range(len(self.places)), key=self._length), most_tokens)

    def epoch(self, number: int, most_tokens: int, seed: int) -> list[list[int]]:
        """Return all rows in the order of one epoch, in batches of at most so many tokens, padding included."""
        shuffler, order = random.Random(f"{seed}/epoch/{number}"), list(range(len(self.places)))
        shuffler.shuffle(order)
        batches: list[list[int]] = []
        for start in range(0, len(order), POOL):
            batches += self._packed(sorted(order[start : start + POOL], key=self._length), most_tokens)
        shuffler.shuffle(batches)
        return batches

    def _length(self, row: int) -> int:
        _, start, end, _ = self.places[row]
        return end - start

    def _packed(self, rows: list[int], most_tokens: int) -> list[list[int]]:
        batches: list[list[int]] = [[]]
        for row in rows:
            if batches[-1] and (len(batches[-1]) + 1) * self._length(row) > most_tokens:
                batches.append([])
            batches[-1].append(row)
        return batches


def _listed(layers: Iterable[int]) -> str:
    return ", ".join(map(str, layers))
