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

COLUMNS = ("prompt_id", "tokens")
"""Columns of `replays_by_prompt`; behind them stand ``steps_<k>`` and ``cut_tokens_<k>`` for each k."""


def replays_by_prompt(cut: CellWindow) -> pd.DataFrame:
    """Return what each prompt's whole answers would have taken at each k up to the arm's own.

    `COLUMNS`, and for each k the steps expected for these decode tokens; at the arm's own k the steps that were taken.
    ``cut_tokens_<k>`` is what cutting the long drafts would give: tokens of those same steps, none of more than k + 1.
    So tokens / steps_<k> is the replayed return, and cut_tokens_<k> / (steps at the arm's own k) the cut one. No rows
    for an arm that does not draft, or whose acceptance is forced. The answers are those of
    `speclab.metrics.answers.answers_by_prompt`.
    """
    speculation = cut.record.asked.speculation
    decode = cut.all_events.decode
    kept = whole_answers(cut)[decode.row]
    longest = speculation.k_at(cut.record.asked.concurrency) if speculation else 0
    if speculation is None or not longest or speculation.is_forced or not kept.any():
        return pd.DataFrame(columns=list(COLUMNS))
    row, step_tokens = decode.row[kept], decode.tokens[kept]
    prompt, names = pd.factorize(cut.requests["prompt_id"].to_numpy()[row])
    last, full, rest = runs(row, step_tokens, longest)
    tried, followed = (step_tokens >= longest).sum(), (step_tokens > longest).sum()
    bonus = float(followed / tried) if tried else 0.0

    def summed(values: NDArray[np.float64] | NDArray[np.int64], of: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.bincount(of, weights=values, minlength=len(names)).astype(np.float64)

    shorter = range(1, longest + 1)
    steps = {f"steps_{k}": summed(expected_steps(full, rest, longest, k, bonus), prompt[last]) for k in shorter}
    tokens = {f"cut_tokens_{k}": summed(np.minimum(step_tokens, k + 1), prompt) for k in shorter}
    return pd.DataFrame({"prompt_id": names, "tokens": summed(step_tokens, prompt), **steps, **tokens})


def by_k(replays: pd.DataFrame) -> pd.DataFrame:
    """Return rows of `replays_by_prompt`, behind any keys, with a row for each k.

    Returns
    -------
    pd.DataFrame
        The keys and `COLUMNS`, then ``k, steps, cut_tokens``.
    """
    keys = [name for name in replays.columns if not name.startswith(("steps_", "cut_tokens_"))]
    parts = [
        replays[[*keys, name, f"cut_tokens_{k}"]].set_axis([*keys, "steps", "cut_tokens"], axis=1).assign(k=int(k))
        for name in replays.columns
        if name.startswith("steps_")
        for k in [name.removeprefix("steps_")]
    ]
    if not parts:
        return pd.DataFrame(columns=[*keys, "k", "steps", "cut_tokens"])
    return pd.concat(parts, ignore_index=True).dropna(subset="steps")


def runs(
    row: NDArray[np.int64], step_tokens: NDArray[np.int64], longest: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the steps of answers as runs: whole drafts accepted one after the other, and the step that ends them.

    Parameters
    ----------
    row : ndarray of int64, shape (steps,)
        Which answer each step belongs to; an answer's steps stand together.
    step_tokens : ndarray of int64, shape (steps,)
        Tokens of each step, 1 to `longest` + 1.
    longest : int
        The k that was drafted.

    Returns
    -------
    last, full, rest : ndarray of int64, shape (runs,)
        The step that ends each run, how many full steps (of `longest` + 1 tokens) it begins with, and the tokens of
        the step behind them: 0 where the answer ended with a full one.
    """
    is_full = step_tokens > longest
    ends_answer = np.append(row[1:] != row[:-1], True)
    last = np.flatnonzero(~is_full | ends_answer)
    length = np.diff(last, prepend=-1)
    return last, length - ~is_full[last], np.where(is_full[last], 0, step_tokens[last])


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
