"""Which k: milliseconds per token at each k of a drafter, from one or two arms that ran.

Tokens per step are replayed step by step (`speclab.findings.tokens_per_step_by_k`). The step time is a line in k, by
what was measured:

- two or more arms of the drafter: the line through their step times, so a part that does not grow with k is seen;
- one arm of a network: what it adds to the baseline's step grows with k from nothing (each position is a pass);
- one arm of a look-up: nothing of what it adds grows with k. A second arm with another k would tell.

The line is used at every k, so that the noise of one arm's step time favours no k. k = 0 is the baseline itself; it
stands beside the others and is never chosen: whether to speculate at all is the speed-up's question.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from speclab.findings.intervals import DRAWS, DrawsOf
from speclab.findings.pairs import NOT_RESOLVED, OK
from speclab.findings.tokens_per_step_by_k import CUT, REPLAYED, Drafter, TokensPerStepByK, tokens_per_step_by_k
from speclab.lab import BASELINE

COLUMNS = [
    *("source", "drafter", "workload", "concurrency", "k", "how", "tokens_per_step", "tokens_low", "tokens_high"),
    *("step_time", "ms_per_token", "low", "high", "over_best", "over_best_low", "over_best_high", "chosen", "cost"),
    *("prompts", "status"),
]

MEASURED, BEYOND, OFF = "measured", "one beyond", "off"
"""How a row's tokens per step are known, beside ``REPLAYED`` and ``CUT`` (`speclab.findings.tokens_per_step_by_k`);
``one beyond`` the longest k is extrapolated and never chosen."""

_NO_RATIO = dict.fromkeys(("low", "high", "over_best", "over_best_low", "over_best_high"), np.nan)


def curves(findings: pd.DataFrame, replays: pd.DataFrame, drafter: Drafter, draws_of: DrawsOf) -> pd.DataFrame:
    """Return milliseconds per token at each k, from 0 (no speculation) to one beyond the longest that ran.

    Parameters
    ----------
    findings : pd.DataFrame
        A lab's findings; a step time counts where its status is ok.
    replays : pd.DataFrame
        `speclab.metrics.replay.by_k` of the lab's cells, behind their keys; may be empty.
    drafter : Drafter
        Whose k.
    draws_of : callable
        Resampled step times; arms at one place must have been resampled together.

    Returns
    -------
    pd.DataFrame
        `COLUMNS`: tokens per step (95% interval over prompts), step time in ms, ms per token (95% interval over
        prompts, blocks and repeats), its ratio to the best k's with an interval, ``chosen`` (the smallest k above 0
        whose ratio is within the noise of 1), and ``cost`` (what the line rests on). Where a step time that the line
        needs is missing, or failed its checks, the status is that cell's and nothing is chosen.
    """
    step_times = findings[findings["finding"] == "step_time"]
    parts = []
    for (source, workload), place in step_times.groupby(["source", "workload"], sort=False):
        here = replays[(replays["source"] == source) & (replays["workload"] == workload)] if len(replays) else replays
        by_k = tokens_per_step_by_k(here, drafter) if len(here) else None
        if by_k is None:
            continue
        for _, at in place.groupby("concurrency"):
            concurrency = float(at["concurrency"].iloc[0])
            drawn = partial(draws_of, "step_time", workload=workload, concurrency=concurrency)
            table = _curve(at, by_k, drafter, drawn)
            parts.append(
                table.assign(source=str(source), drafter=drafter.name, workload=str(workload), concurrency=concurrency)
            )
    return pd.concat(parts, ignore_index=True)[COLUMNS] if parts else pd.DataFrame(columns=COLUMNS)


def worth_measuring(table: pd.DataFrame, most: int = 2) -> list[int]:
    """Return the one or two values of k of one drafter that are worth a run of their own, the most wanted first.

    A k that no arm has and that is chosen somewhere (`curves`) is a prediction to confirm. Where one position more than
    the longest would be better than all shorter k, beyond the noise, a draft half as long again is worth a run. Wanted
    means: at how many places; those where no k reaches the baseline, beyond the noise, want none.
    """
    wanted: dict[int, int] = {}
    for _, place in table[table["status"] == OK].groupby(["source", "workload", "concurrency"], sort=False):
        if ((place["how"] == OFF) & (place["over_best_high"] < 1)).any():
            continue
        longest = int(place["k"].max()) - 1
        is_longer_better = ((place["how"] == BEYOND) & (place["over_best_high"] < 1)).any()
        chosen = place.loc[place["chosen"] & place["how"].isin([REPLAYED, CUT]), "k"]
        for k in [longest + max(1, longest // 2)] if is_longer_better else chosen:
            wanted[int(k)] = wanted.get(int(k), 0) + 1
    return sorted(sorted(wanted), key=lambda k: -wanted[k])[:most]


def rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return curves as rows of findings (`speclab.findings.long_table.COLUMNS`); k stands as position.

    ``tokens_per_step_at_k`` (of each workload), ``ms_per_token_at_k`` and ``best_k`` (of each place); `n` is the
    prompts. The arm is the drafter's, the one with its largest k.
    """
    drafting = table[~table["how"].isin([OFF, BEYOND])].rename(columns={"drafter": "arm", "prompts": "n"})
    keys = ["source", "arm", "workload"]
    tokens = drafting.drop_duplicates([*keys, "k"]).assign(
        finding="tokens_per_step_at_k", status=OK, position=drafting["k"]
    )
    tokens = tokens[[*keys, "finding", "position", "tokens_per_step", "tokens_low", "tokens_high", "n", "status"]]
    names = {"tokens_per_step": "value", "tokens_low": "low", "tokens_high": "high"}
    of_place = [*keys, "concurrency", "n", "status", "finding"]
    ms = drafting.assign(finding="ms_per_token_at_k", position=drafting["k"], value=drafting["ms_per_token"])
    best = drafting[drafting["chosen"].astype(bool)]
    best = best.assign(finding="best_k", value=best["k"])
    parts = [
        tokens.rename(columns=names),
        ms[[*of_place, "position", "value", "low", "high"]],
        best[[*of_place, "value"]],
    ]
    return pd.concat(parts, ignore_index=True)


def _curve(at: pd.DataFrame, by_k: TokensPerStepByK, drafter: Drafter, drawn: DrawsOf) -> pd.DataFrame:
    ks = np.arange(drafter.longest + 2)
    times, cost, status = _step_times(at.set_index("arm"), ks, drafter, drawn)
    beyond = by_k.tokens_per_step[:, -1] + by_k.whole * _goes_on(by_k)
    tokens = np.column_stack([np.ones(len(beyond)), by_k.tokens_per_step, beyond])
    ms = times / tokens
    row = pd.DataFrame({"k": ks, "how": [_how(k, by_k, drafter) for k in ks.tolist()], "cost": cost, "chosen": False})
    row["tokens_per_step"], row["step_time"], row["ms_per_token"] = tokens[0], times[0], ms[0]
    row["tokens_low"], row["tokens_high"] = np.quantile(tokens[1:], [0.025, 0.975], axis=0)
    row["prompts"], row["status"] = by_k.prompts, status
    if status != OK:
        return row.assign(**_NO_RATIO)
    best = 1 + int(np.argmin(ms[0, 1:-1]))
    ratio = ms / ms[:, [best]]
    row["low"], row["high"] = np.quantile(ms[1:], [0.025, 0.975], axis=0)
    row["over_best"] = ratio[0]
    row["over_best_low"], row["over_best_high"] = np.quantile(ratio[1:], [0.025, 0.975], axis=0)
    tied = 1 + np.flatnonzero(row["over_best_low"].to_numpy()[1:-1] <= 1)
    row.loc[int(tied.min(initial=best)), "chosen"] = True
    return row


def _how(k: int, by_k: TokensPerStepByK, drafter: Drafter) -> str:
    if k == 0:
        return OFF
    if k > drafter.longest:
        return BEYOND
    return MEASURED if k in by_k.measured else by_k.reading


def _goes_on(by_k: TokensPerStepByK) -> NDArray[np.float64]:
    """Return the chance that one more position would be accepted: the share of whole drafts is taken as geometric."""
    chance: NDArray[np.float64] = np.clip(by_k.whole, 0, 1) ** (1 / by_k.tokens_per_step.shape[1])
    return chance


def _step_times(
    by_arm: pd.DataFrame, ks: NDArray[np.int64], drafter: Drafter, drawn: DrawsOf
) -> tuple[NDArray[np.float64], str, str]:
    """Return step times in ms at each k, shape (1 + draws, ks), what they rest on, and their status."""

    def of(arm: str) -> NDArray[np.float64]:
        value, draws = float(by_arm["value"].loc[arm]), drawn(arm=arm)
        # a step resampled to nothing or to without end is as good as a thousandth of it, or a thousand times it
        return np.append(value, np.full(DRAWS, value) if draws is None else np.clip(draws, value / 1e3, value * 1e3))

    def standing(arm: str) -> str:
        return str(by_arm.loc[arm, "status"]) if arm in by_arm.index else NOT_RESOLVED

    known = {k: of(arm) for k, arm in drafter.arms.items() if standing(arm) == OK}
    if not known or standing(BASELINE) != OK:
        missing = BASELINE if known else drafter.name
        return np.full((1 + DRAWS, len(ks)), np.nan), f"no step time of {missing}", standing(missing)
    off = of(BASELINE)
    x, y = np.array(list(known), dtype=float), np.column_stack(list(known.values()))
    if len(known) > 1:
        slope = (y - y.mean(axis=1, keepdims=True)) @ (x - x.mean()) / ((x - x.mean()) ** 2).sum()
        cost = f"line through k = {', '.join(map(str, known))}" + (", fell: taken as flat" if slope[0] < 0 else "")
    else:
        slope = (y[:, 0] - off) / x[0] if drafter.grows else np.zeros(len(off))
        cost = f"k = {x[0]:g} alone, " + ("all that it adds grows with k" if drafter.grows else "nothing grows with k")
    slope = np.clip(slope, 0, None)
    times = (y.mean(axis=1) - slope * x.mean())[:, None] + slope[:, None] * ks
    times[:, 0] = off
    return times, cost, OK
