"""Which k: milliseconds per token at each k of a drafter, from one or two arms that ran.

What comes back is replayed step by step (`speclab.findings.returns`). What it costs is a line in k, by what was
measured:

- two or more arms of the drafter: the line through their step times, so a part that does not grow with k is seen;
- one arm of a network: what it adds to the baseline's step grows with k from nothing (each position is a pass);
- one arm of a look-up: nothing of what it adds grows with k. A second arm with another k would tell.

The line is used at every k, so that the noise of one arm's step time favours no k; k = 0 is the baseline itself.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from speclab.findings.pairs import FAILED_CHECK, NOT_RESOLVED, OK, state
from speclab.findings.returns import CUT, DRAWS, REPLAYED, SEED, Drafter, Returns, returns
from speclab.lab import BASELINE

COLUMNS = [
    *("source", "drafter", "workload", "concurrency", "k", "how", "tokens_per_step", "tokens_low", "tokens_high"),
    *("step_time", "ms_per_token", "low", "high", "over_best", "over_best_low", "over_best_high", "chosen", "cost"),
    "status",
]

MEASURED, BEYOND, OFF = "measured", "one beyond", "off"
"""How a row's return is known, beside `speclab.findings.returns.REPLAYED` and ``CUT``; ``one beyond`` the longest k is
extrapolated and never chosen."""


def curves(cells: pd.DataFrame, bursts: pd.DataFrame, drafter: Drafter) -> pd.DataFrame:
    """Return milliseconds per token at each k, from 0 (no speculation) to one beyond the longest that ran.

    Parameters
    ----------
    cells : pd.DataFrame
        Rows of `speclab.metrics.summary.Summary`. A step time counts where its cell passed its checks.
    bursts : pd.DataFrame
        `speclab.metrics.replay.bursts_by_prompt` of the cells, behind their keys.
    drafter : Drafter
        Whose k.

    Returns
    -------
    pd.DataFrame
        `COLUMNS`: tokens per step (a 95% interval over prompts), step time in ms, ms per token (a 95% interval over
        prompts, and over repeats where there are several), its ratio to the best k's with the lower bound of that
        ratio, ``chosen`` (the smallest k whose ratio is within the noise of 1), and ``cost`` (the line's basis). Not
        resolved where a step time is missing that the line needs; failed check where its cells failed.
    """
    parts = []
    of_drafter = cells.assign(state=state(cells))[cells["arm"].isin([BASELINE, *drafter.arms.values()])]
    for (source, workload), place in of_drafter.groupby(["source", "workload"], sort=False):
        here = bursts[(bursts["source"] == source) & (bursts["workload"] == workload)] if len(bursts) else bursts
        back = returns(here, drafter) if len(here) else None
        if back is None:
            continue
        for _, at in place.groupby("concurrency"):
            table = _curve(at, back, drafter)
            where = {"source": str(source), "workload": str(workload), "concurrency": at["concurrency"].iloc[0]}
            parts.append(table.assign(drafter=drafter.name, **where))
    return pd.concat(parts, ignore_index=True)[COLUMNS] if parts else pd.DataFrame(columns=COLUMNS)


def worth_measuring(table: pd.DataFrame, most: int = 2) -> list[int]:
    """Return the one or two values of k of one drafter that are worth a run of their own, the most wanted first.

    A k that no arm has and that is chosen somewhere (`curves`) is a prediction to confirm. Where one position more than
    the longest would be better than all shorter k, beyond the noise, a draft half as long again is worth a run. Wanted
    means: at how many places.
    """
    wanted: dict[int, int] = {}
    for _, place in table[table["status"] == OK].groupby(["source", "workload", "concurrency"], sort=False):
        longest = int(place["k"].max()) - 1
        is_longer_better = ((place["how"] == BEYOND) & (place["over_best_high"] < 1)).any()
        chosen = place.loc[place["chosen"] & place["how"].isin([REPLAYED, CUT]), "k"]
        for k in [longest + max(1, longest // 2)] if is_longer_better else chosen:
            wanted[int(k)] = wanted.get(int(k), 0) + 1
    return sorted(sorted(wanted), key=lambda k: -wanted[k])[:most]


def _curve(at: pd.DataFrame, back: Returns, drafter: Drafter) -> pd.DataFrame:
    ks = np.arange(drafter.longest + 2)
    times, cost = _step_times(at, ks, drafter)
    beyond = back.tokens_per_step[:, -1] + back.whole * _goes_on(back)
    tokens = np.column_stack([np.ones(len(beyond)), back.tokens_per_step, beyond])
    ms = times / tokens
    row = pd.DataFrame({"k": ks, "how": [_how(k, back, drafter) for k in ks.tolist()], "cost": cost, "chosen": False})
    row["tokens_per_step"], row["step_time"], row["ms_per_token"] = tokens[0], times[0], ms[0]
    row["tokens_low"], row["tokens_high"] = np.quantile(tokens[1:], [0.025, 0.975], axis=0)
    if not np.isfinite(ms[0]).all():
        failed = (at["state"] == FAILED_CHECK).any()
        nothing = dict.fromkeys(("low", "high", "over_best", "over_best_low", "over_best_high"), np.nan)
        return row.assign(**nothing, status=FAILED_CHECK if failed else NOT_RESOLVED)
    best = int(np.argmin(ms[0, :-1]))
    ratio = ms / ms[:, [best]]
    row["low"], row["high"] = np.nanquantile(ms[1:], [0.025, 0.975], axis=0)
    row["over_best"] = ratio[0]
    row["over_best_low"], row["over_best_high"] = np.nanquantile(ratio[1:], [0.025, 0.975], axis=0)
    tied = np.flatnonzero(row["over_best_low"].to_numpy()[:-1] <= 1)
    row.loc[min(best, int(tied.min(initial=best))), "chosen"] = True
    return row.assign(status=OK)


def _how(k: int, back: Returns, drafter: Drafter) -> str:
    if k == 0:
        return OFF
    if k > drafter.longest:
        return BEYOND
    return MEASURED if k in back.measured else back.reading


def _goes_on(back: Returns) -> NDArray[np.float64]:
    """Return the chance that one more position would be accepted: the share of whole drafts is taken as geometric."""
    chance: NDArray[np.float64] = np.clip(back.whole, 0, 1) ** (1 / back.tokens_per_step.shape[1])
    return chance


def _step_times(at: pd.DataFrame, ks: NDArray[np.int64], drafter: Drafter) -> tuple[NDArray[np.float64], str]:
    """Return step times in ms at each k, shape (1 + draws, ks), and what they rest on."""
    repeats = sorted(at["repeat"].unique())
    weights = _repeat_weights(len(repeats))
    off = _mean(at[at["arm"] == BASELINE], repeats, weights)
    ran = {k: _mean(at[at["arm"] == arm], repeats, weights) for k, arm in drafter.arms.items()}
    known = {k: time for k, time in ran.items() if np.isfinite(time[0])}
    if len(known) > 1:
        x, y = np.array(list(known), dtype=float), np.column_stack(list(known.values()))
        slope = (y - y.mean(axis=1, keepdims=True)) @ (x - x.mean()) / ((x - x.mean()) ** 2).sum()
        floor = y.mean(axis=1) - np.clip(slope, 0, None) * x.mean()
        cost = f"line through k = {_listed(list(known))}"
        if slope[0] < 0:
            cost += ", which fell: taken as flat"
    elif known:
        k, time = next(iter(known.items()))
        slope = (time - off) / k if drafter.grows else np.zeros_like(time)
        floor = time - np.clip(slope, 0, None) * k
        cost = f"k = {k} alone, " + ("all that it adds grows with k" if drafter.grows else "nothing grows with k")
    else:
        return np.full((1 + DRAWS, len(ks)), np.nan), "no step time"
    times = floor[:, None] + np.clip(slope, 0, None)[:, None] * ks
    times[:, 0] = off
    return times, cost


def _repeat_weights(repeats: int) -> NDArray[np.float64]:
    # with one repeat every draw is that one: the interval then holds the prompts' part alone
    drawn = np.random.default_rng(SEED + 1).multinomial(repeats, np.full(repeats, 1 / repeats), DRAWS)
    return np.vstack([np.ones(repeats), drawn])


def _mean(rows: pd.DataFrame, repeats: list[int], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean step time of an arm in each draw of repeats, ms; NaN where no repeat of the draw passed."""
    passed = rows[rows["state"] == OK].set_index("repeat")["step_time"].astype(float)
    values = passed.reindex(repeats).to_numpy()
    there = np.isfinite(values)
    held = weights @ there.astype(float)
    total = weights @ np.where(there, values, 0.0)
    mean: NDArray[np.float64] = np.divide(total, held, out=np.full(len(held), np.nan), where=held > 0)
    return mean


def _listed(ks: list[int]) -> str:
    return " and ".join([", ".join(map(str, ks[:-1])), str(ks[-1])]) if len(ks) > 1 else str(ks[0])
