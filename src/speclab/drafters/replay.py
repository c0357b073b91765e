"""What a server would accept on known answers: it drafts, keeps what is right, and continues after it."""

from __future__ import annotations

import torch
from torch import Tensor

from speclab.drafters.batches import Batch

K = 3
"""Draft positions that drafters are judged at."""


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
            [rows, length]: how many tokens of the draft that begins two tokens on are right before the first wrong one.
        batch : Batch
            The answers.
        """
        for row, (length, prompt) in enumerate(zip(batch.lengths.tolist(), batch.prompts.tolist(), strict=True)):
            position = prompt - 1
            while position + 2 < length:
                reached = int(right[row, position])
                self.drafts += 1
                self.accepted[:reached] += 1
                position += reached + 1

    def figures(self) -> dict[str, float]:
        """Return ``length`` (1 + accepted tokens a draft) and ``position_0`` on, shares of all drafts."""
        shares = (self.accepted / max(1, self.drafts)).tolist()
        return {"length": 1 + sum(shares), **{f"position_{index}": share for index, share in enumerate(shares)}}
