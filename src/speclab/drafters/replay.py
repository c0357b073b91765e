"""What a server would accept on answers that are known: it drafts, keeps what is right, and goes on behind it."""

from __future__ import annotations

import torch
from torch import Tensor

from speclab.drafters.batches import Batch

K = 3
"""Draft positions that drafters are judged by."""


class Tally:
    """Drafts and accepted drafts by position, over batches.

    Parameters
    ----------
    k : int
        Tokens of each draft.
    """

    def __init__(self, k: int):
        self.drafts, self.accepted = 0, torch.zeros(k)

    def add(self, right: Tensor, batch: Batch) -> None:
        """Count the drafts that a server makes on some answers.

        Parameters
        ----------
        right : Tensor
            [rows, length]: how many tokens of the draft that begins two tokens on are right, one after the other.
        batch : Batch
            The answers.
        """
        for row, (length, prompt) in enumerate(zip(batch.lengths.tolist(), batch.prompts.tolist(), strict=True)):
            at = prompt - 1
            while at + 2 < length:
                reached = int(right[row, at])
                self.drafts += 1
                self.accepted[:reached] += 1
                at += reached + 1

    def figures(self) -> dict[str, float]:
        """Return ``length`` (1 + accepted tokens a draft) and ``position_0`` on, shares of all drafts."""
        shares = (self.accepted / max(1, self.drafts)).tolist()
        return {"length": 1 + sum(shares), **{f"position_{index}": share for index, share in enumerate(shares)}}
