"""Tokens per step at each k of one drafter: measured where an arm has that k, replayed from a longer one elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from speclab.findings.intervals import DRAWS, generator
from speclab.lab import Arm

REPLAYED, CUT = "replayed", "cut"

BIAS_COLUMNS = [
    *("source", "drafter", "workload", "from_k", "k"),
    *("measured", "replayed", "cut", "replay_bias", "cut_bias", "prompts"),
]


@dataclass(frozen=True, slots=True)
class Drafter:
    """The arms of a lab that differ in nothing but k.

    Attributes
    ----------
    name : str
        Name of the arm with the largest k.
    arms : mapping of int to str
        The arm that has each measured k.
    grows : bool
        Whether drafting is a pass of a network for each position, so that its time grows with k; a look-up's does not.
    """

    name: str
    arms: Mapping[int, str]
    grows: bool

    @property
    def longest(self) -> int:
        """The largest k that was measured."""
        return max(self.arms)


def drafters(arms: Sequence[Arm]) -> list[Drafter]:
    """Return the drafters among a lab's arms.

    Left out are forced acceptance, where nothing is drafted right, and a schedule, which has no one k.
    """
    groups: dict[str, dict[int, Arm]] = {}
    for arm in arms:
        if arm.speculation is None or arm.is_forced or arm.has_schedule:
            continue
        same = arm.model_copy(update={"speculation": arm.speculation.model_copy(update={"num_speculative_tokens": 1})})
        key = f"{same.speculation!r} {same.server!r}"
        groups.setdefault(key, {})[arm.k] = arm
    made = []
    for group in groups.values():
        longest = group[max(group)]
        grows = longest.speculation is not None and longest.speculation.method != "ngram"
        made.append(Drafter(longest.arm, {k: group[k].arm for k in sorted(group)}, grows))
    return made


@dataclass(frozen=True, slots=True)
class TokensPerStepByK:
    """Tokens per step of one drafter on one workload, at each k from 1 to the longest that was measured.

    Attributes
    ----------
    tokens_per_step : ndarray of float64, shape (1 + draws, longest)
        The first row is the estimate, the others are its bootstrap draws over prompts.
    measured : tuple of int
        The k of arms that ran; the others are read from the next longer of these.
    reading : str
        ``replayed`` or ``cut``: how they are read. Replayed, unless the lab holds a shorter arm of the drafter whose
        own figure is nearer to the cut curve, as where each place is drawn afresh (a simulated drafter).
    whole : ndarray of float64, shape (1 + draws,)
        Share of the longest arm's steps in which the whole draft was accepted.
    prompts : int
        Prompts that it rests on.
    """

    tokens_per_step: NDArray[np.float64]
    measured: tuple[int, ...]
    reading: str
    whole: NDArray[np.float64]
    prompts: int


def tokens_per_step_by_k(replays: pd.DataFrame, drafter: Drafter) -> TokensPerStepByK | None:
    """Return tokens per step at each k; None where the longest arm has no answers.

    Parameters
    ----------
    replays : pd.DataFrame
        `speclab.metrics.replay.by_k` of the cells of one source and workload, behind their keys. Answers
        of all concurrencies and repeats are taken together: what a draft brings does not depend on the batch.
    drafter : Drafter
        Whose k.
    """
    sums = {k: _sums(replays[replays["arm"] == arm]) for k, arm in drafter.arms.items()}
    known = {k: table for k, table in sums.items() if not table.empty}
    if drafter.longest not in known:
        return None
    prompts = sorted({prompt for table in known.values() for prompt in table.index.get_level_values("prompt_id")})
    weights = _weights(len(prompts))
    off = bias(replays, drafter)
    is_cut = len(off) > 0 and bool(off["cut_bias"].abs().mean() < off["replay_bias"].abs().mean())

    def of(arms_k: int, k: int, column: str) -> NDArray[np.float64]:
        return known[arms_k].xs(k, level="k")[column].reindex(prompts, fill_value=0.0).to_numpy(float)

    columns = []
    for k in range(1, drafter.longest + 1):
        nearest = min(longer for longer in known if longer >= k)
        tokens, steps = ("cut_tokens", of(nearest, nearest, "steps")) if is_cut else ("tokens", of(nearest, k, "steps"))
        columns.append(_ratio(weights, of(nearest, k, tokens), steps))
    longest = drafter.longest
    taken = of(longest, longest, "steps")
    of_part = of(longest, longest - 1, "cut_tokens") if longest > 1 else taken
    whole = _ratio(weights, of(longest, longest, "cut_tokens") - of_part, taken)
    reading = CUT if is_cut else REPLAYED
    return TokensPerStepByK(np.column_stack(columns), tuple(known), reading, whole, len(prompts))


def bias(replays: pd.DataFrame, drafter: Drafter) -> pd.DataFrame:
    """Return how far a longer arm's cut curve and its replay are from what a shorter arm of the same drafter measured.

    Parameters
    ----------
    replays : pd.DataFrame
        As for `tokens_per_step_by_k`, of any number of sources and workloads.
    drafter : Drafter
        Whose k.

    Returns
    -------
    pd.DataFrame
        `BIAS_COLUMNS`: tokens per step at ``k``, measured and from the arm with ``from_k``, over the prompts that both
        answered; a prompt weighs what it weighs in the longer arm. The biases are relative to the measured value.
    """
    rows: list[list[object]] = []
    for (source, workload), place in replays.groupby(["source", "workload"], sort=False):
        sums = {k: _sums(place[place["arm"] == arm]) for k, arm in drafter.arms.items()}
        for from_k, longer in sums.items():
            for k, shorter in sums.items():
                if k >= from_k or longer.empty or shorter.empty:
                    continue
                both = longer.xs(k, level="k").join(shorter.xs(k, level="k").add_suffix("_measured"), how="inner")
                both = both.join(longer.xs(from_k, level="k")["steps"].rename("taken"))
                if both.empty:
                    continue
                tokens = both["tokens"].sum()
                measured = tokens / (both["tokens"] * both["steps_measured"] / both["tokens_measured"]).sum()
                replayed, cut = tokens / both["steps"].sum(), both["cut_tokens"].sum() / both["taken"].sum()
                figures = [measured, replayed, cut, replayed / measured - 1, cut / measured - 1]
                rows.append([source, drafter.name, workload, from_k, k, *figures, len(both)])
    return pd.DataFrame(rows, columns=BIAS_COLUMNS)


def _sums(replays: pd.DataFrame) -> pd.DataFrame:
    return replays.groupby(["prompt_id", "k"])[["tokens", "steps", "cut_tokens"]].sum()


def _weights(prompts: int) -> NDArray[np.float64]:
    """Return how often each draw takes each prompt, shape (1 + draws, prompts); the first row takes each once."""
    drawn = generator("prompts", prompts).multinomial(prompts, np.full(prompts, 1 / prompts), DRAWS)
    return np.vstack([np.ones(prompts), drawn])


def _ratio(weights: NDArray[np.float64], above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    under = weights @ below
    ratio: NDArray[np.float64] = np.divide(weights @ above, under, out=np.full(len(under), np.nan), where=under > 0)
    return ratio
