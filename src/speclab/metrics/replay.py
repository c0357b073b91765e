"""How many steps the same answers would have taken with a shorter draft.

Cutting the acceptance curve of a long draft at a shorter k assumes that the short drafts would have started where the
long ones did. They would not: a long draft that is accepted whole jumps over the easy places, and a short one stops in
the middle of them and drafts there again. So the answers are replayed step by step instead, under one assumption: a
token that the drafter got right in a long draft it would have got right in a short one that starts later, and where it
was wrong, or had no draft, it would have been so again.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from speclab.metrics.answers import whole_answers
from speclab.metrics.window import CellWindow

COLUMNS = ("prompt_id", "k", "tokens", "steps", "cut_tokens")


def bursts_by_prompt(cut: CellWindow) -> pd.DataFrame:
    """Return what each prompt's whole answers would have taken at each k up to the arm's own, `COLUMNS`.

    `tokens` and `steps` are decode tokens and the steps expected for them at ``k``; at the arm's own k these are the
    steps that were taken. ``cut_tokens`` is what cutting the long drafts would give: tokens of those same steps, none
    of more than k + 1. So tokens / steps is the replayed return, and cut_tokens / (steps at the arm's own k) the cut
    one. No rows for an arm that does not draft. The answers are those of `speclab.metrics.answers.answers_by_prompt`.
    """
    speculation = cut.record.asked.speculation
    decode = cut.all_events.decode
    kept = whole_answers(cut)[decode.row]
    if speculation is None or not kept.any():
        return pd.DataFrame(columns=list(COLUMNS))
    row, burst = decode.row[kept], decode.tokens[kept]
    longest = speculation.num_speculative_tokens
    prompt, names = pd.factorize(cut.requests["prompt_id"].to_numpy()[row])
    last, full, rest = runs(row, burst, longest)
    tried, followed = (burst >= longest).sum(), (burst > longest).sum()
    bonus = float(followed / tried) if tried else 0.0
    tokens = np.bincount(prompt, weights=burst)
    parts = []
    for k in range(1, longest + 1):
        steps = expected_steps(full, rest, longest, k, bonus)
        parts.append(
            pd.DataFrame(
                {
                    "prompt_id": names,
                    "k": k,
                    "tokens": tokens.astype(np.int64),
                    "steps": np.bincount(prompt[last], weights=steps, minlength=len(names)),
                    "cut_tokens": np.bincount(prompt, weights=np.minimum(burst, k + 1)).astype(np.int64),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def runs(
    row: NDArray[np.int64], burst: NDArray[np.int64], longest: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the steps of answers as runs: whole drafts accepted one after the other, and the step that ends them.

    Parameters
    ----------
    row : ndarray of int64, shape (steps,)
        Which answer each step belongs to; an answer's steps stand together.
    burst : ndarray of int64, shape (steps,)
        Tokens of each step, 1 to `longest` + 1.
    longest : int
        The k that was drafted.

    Returns
    -------
    last, full, rest : ndarray of int64, shape (runs,)
        The step that ends each run, how many full steps (of `longest` + 1 tokens) it begins with, and the tokens of
        the step behind them: 0 where the answer ended with a full one.
    """
    is_full = burst > longest
    ends_answer = np.append(row[1:] != row[:-1], True)
    last = np.flatnonzero(~is_full | ends_answer)
    length = np.diff(last, prepend=-1)
    return last, length - ~is_full[last], np.where(is_full[last], 0, burst[last])


def expected_steps(
    full: NDArray[np.int64], rest: NDArray[np.int64], longest: int, k: int, bonus: float
) -> NDArray[np.float64]:
    """Return how many steps with drafts of `k` each run of longer ones would have taken, shape (runs,).

    Parameters
    ----------
    full, rest : ndarray of int64, shape (runs,)
        From `runs`.
    longest : int
        The k that was drafted.
    k : int
        The shorter one.
    bonus : float
        Chance that the token behind a draft that was accepted whole would have been drafted right too: the target's
        own, so nobody drafted it. The share of last positions accepted once reached is the nearest that is known.
    """
    width = k + 1  # tokens of a full short step
    phase = np.arange(width)  # tokens that the short step under way has given
    at = np.zeros(width)
    at[0] = 1.0
    taken = 0.0
    closing = np.ceil((phase[:, None] + np.arange(longest + 1)) / width)  # steps to the end of a run, by phase and rest
    table = np.empty((int(full.max(initial=0)) + 1, longest + 1))
    for index in range(len(table)):
        table[index] = taken + at @ closing
        # a full long step: `longest` tokens that were drafted right, then one that nobody drafted
        done, behind = np.divmod(phase + longest, width)
        taken += float(at @ done)
        moved = np.bincount(behind, weights=at, minlength=width)
        goes_on = np.where(phase < k, bonus, 0.0)
        taken += float(moved @ (1 - goes_on))
        at = np.roll(moved * goes_on, 1)
        at[0] += float(moved @ (1 - goes_on))
    steps: NDArray[np.float64] = table[full, rest]
    return steps
