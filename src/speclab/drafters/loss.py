"""Cross-entropy against the target's distribution and its greedy token, in pieces, with its gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

PIECE = 2**22
"""Logits that exist at a time: all of a batch's would be read from memory five times over."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What some rows should predict.

    Attributes
    ----------
    states : Tensor
        [rows, hidden], the target's normed states, whose distribution is to be matched.
    head : Tensor
        [draft vocabulary, hidden], the target's output rows of the draft vocabulary.
    greedy : Tensor
        [rows], the draft vocabulary's number of the greedy token; -1 where there is none.
    weights : Tensor
        [rows], float32; a row of weight 0 is left out.
    greedy_share : float
        Weight of the greedy token, where there is one, beside the distribution.
    """

    states: Tensor
    head: Tensor
    greedy: Tensor
    weights: Tensor
    greedy_share: float


def cross_entropy(states: Tensor, head: Tensor, goal: Goal) -> tuple[Tensor, Tensor]:
    """Return the sum of weighted cross-entropies, and the rows' predictions.

    Parameters
    ----------
    states : Tensor
        [rows, hidden], normed, in bfloat16.
    head : Tensor
        [draft vocabulary, hidden], in bfloat16.
    goal : Goal
        What they should predict.

    Returns
    -------
    Tensor, Tensor
        The sum, a float32 scalar with gradients; the likeliest draft token of each row, [rows].
    """
    loss, chosen = _CrossEntropy.apply(states, head, goal)
    return loss, chosen


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, head: Tensor, goal: Goal) -> tuple[Tensor, Tensor]:
        total, chosen = torch.zeros(()), torch.empty(len(states), dtype=torch.int64)
        of_states, learns = torch.zeros_like(states), ctx.needs_input_grad[1]
        of_head = torch.zeros(head.shape if learns else 0, dtype=torch.float32)
        rows_at_once = max(1, PIECE // len(head))
        for start in range(0, len(states), rows_at_once):
            piece = slice(start, start + rows_at_once)
            logits = linear(states[piece], head).float()
            chosen[piece] = logits.argmax(-1)
            log_probabilities = logits.log_softmax(-1)
            target = linear(goal.states[piece], goal.head).float().softmax(-1)
            greedy, weights = goal.greedy[piece], goal.weights[piece]
            rows = (greedy >= 0).nonzero().squeeze(1)
            target[rows] *= 1 - goal.greedy_share
            target[rows, greedy[rows]] += goal.greedy_share
            total -= ((log_probabilities * target).sum(-1) * weights).sum()
            gradient = log_probabilities.exp_().sub_(target).mul_(weights.unsqueeze(1)).to(states.dtype)
            of_states[piece] = gradient @ head
            if learns:
                of_head += gradient.T @ states[piece]
        ctx.save_for_backward(of_states, of_head.to(head.dtype))
        ctx.mark_non_differentiable(chosen)
        return total, chosen

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor | None, None]:
        of_states, of_head = ctx.saved_tensors
        return of_states * gradients[0], of_head * gradients[0] if ctx.needs_input_grad[1] else None, None
