"""A pilot from a lab's tables."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from speclab.budget import components
from speclab.budget.components import Estimate
from speclab.budget.pilot import BLOCKS, CellPilot, Pilot
from speclab.errors import UserError
from speclab.findings.intervals import joined
from speclab.findings.pairs import OK, state
from speclab.lab import BASELINE, Phases

SAME = 0.5
"""Share of prompts that repeats of the lab's median cell have in common, beyond which they serve the same prompts."""

LEAST_OF_STEPS = 0.05
"""Share of the variance within windows that is left to steps at least, where texts seem to explain it all."""

NOTHING = Estimate(0.0, 0.0)


def pilot(
    cells: pd.DataFrame,
    blocks: pd.DataFrame,
    answers: pd.DataFrame,
    prompts: Mapping[str, int],
    phases: Phases,
    *,
    start_s: float = 0.0,
    pause_s: float = 0.0,
) -> Pilot:
    """Return what a lab's tables say about the variance and the cost of its cells.

    Cells that failed a check stand in only where an arm has no other at a place.

    Parameters
    ----------
    cells, blocks, answers : pd.DataFrame
        Tables of `speclab.results.lab_tables.Tables`, of one source; `answers` may be empty.
    prompts : mapping of str to int
        Prompts of each workload.
    phases : Phases
        The lab's own.
    start_s, pause_s : float
        As in `Pilot`.

    Raises
    ------
    UserError
        No cell has finished, no two repeats of any cell, or the baseline stands beside none.
    """
    finished = _chosen(cells)
    if finished.empty:
        raise UserError(
            "no cell of this lab has finished", "a plan needs a pilot: run the lab with two repeats or more"
        )
    if finished.groupby(["arm", "workload", "concurrency"])["repeat"].nunique().max() < 2:
        raise UserError(
            "every cell has one repeat",
            "what changes from run to run shows only in a second one: run a pilot with --repeats 3",
        )
    based = set(map(tuple, finished.loc[finished["arm"] == BASELINE, ["workload", "concurrency"]].to_numpy().tolist()))
    if not based:
        raise UserError(
            "the baseline has no finished cell", "a speed-up is planned with its baseline: run that arm as well"
        )
    if finished["arm"].eq(BASELINE).all():
        raise UserError("only the baseline has finished cells", "run an arm beside it")
    made: list[CellPilot] = []
    same = _serve_the_same(answers)
    for arm, of_arm in finished.groupby("arm", sort=False):
        own = answers[answers["arm"] == arm] if len(answers) else answers
        parts = blocks[blocks["arm"] == arm] if len(blocks) else blocks
        made += _arm(str(arm), of_arm, parts, own, prompts, phases, same)
    beside = [cell for cell in made if cell.where in based]
    if all(cell.arm == BASELINE for cell in beside):
        raise UserError("no arm was measured where the baseline was", "run both at the same places")
    return Pilot(
        source=" and ".join(sorted(finished["source"].unique())),
        cells=tuple(beside),
        alone=tuple((cell.arm, *cell.where) for cell in made if cell.where not in based),
        start_s=start_s,
        pause_s=pause_s,
        drop_last_s=phases.drop_last_s,
    )


def _chosen(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells to rest on, with ``passed``: of each arm and place those that passed, or all that finished."""
    there = cells[(cells["status"] == "ok") & (pd.to_numeric(cells["system_throughput"]) > 0)]
    if there.empty:
        return there
    there = there.assign(passed=state(there, "system_throughput") == OK)
    any_passed = there.groupby(["arm", "workload", "concurrency"])["passed"].transform("any")
    return there[there["passed"] | ~any_passed]


def _arm(
    arm: str,
    cells: pd.DataFrame,
    blocks: pd.DataFrame,
    answers: pd.DataFrame,
    prompts: Mapping[str, int],
    phases: Phases,
    same: bool,
) -> list[CellPilot]:
    lengths = _answer_lengths(answers)
    by_workload = (
        {str(name): components.texts(part) for name, part in answers.groupby("workload")} if len(answers) else {}
    )
    known = [estimate for estimate in by_workload.values() if estimate is not None]
    # the widest of the arm's other workloads where one has too few prompts: a guess, and as doubtful as it is large
    guess = max(known, key=lambda estimate: estimate.value, default=NOTHING)
    guess = Estimate(guess.value, max(guess.value, guess.doubt))
    made: list[CellPilot] = []
    raw: list[tuple[float, int]] = []
    apart: list[float] = []
    for workload, concurrency in cells[["workload", "concurrency"]].drop_duplicates().itertuples(index=False):
        of_place = cells[(cells["workload"] == workload) & (cells["concurrency"] == concurrency)]
        repeats = of_place["repeat"].tolist()
        speeds = np.log(pd.to_numeric(of_place["system_throughput"]).to_numpy(np.float64))
        per_slot = float(np.exp(speeds.mean())) / concurrency
        mean, longest = lengths.get(str(workload), (0.0, 0.0))
        of_texts = (by_workload.get(workload) or guess) if mean else NOTHING
        cell = CellPilot(
            arm=arm, workload=str(workload), concurrency=int(concurrency), log_speed=float(speeds.mean()),
            texts=of_texts, steps=NOTHING, machine=NOTHING,
            answers_per_s=per_slot * concurrency / mean if mean else 0.0,
            prompts=prompts[str(workload)], ramp_s=max(phases.drop_first_s, longest / per_slot),
            repeats=len(repeats), window_s=float(_windows(of_place, blocks, phases)), same_prompts=same,
            passed=bool(of_place["passed"].all()),
        )  # fmt: skip
        rates = _rates(blocks, workload, concurrency, repeats)
        if rates is None:  # too short for blocks: all that its repeats differ by is the machine's
            raw.append((np.nan, 1))
        else:
            variance, freedom = components.steps_in_window(rates, cell.window_s, same_prompts=same)
            if not same and cell.answers_per_s:  # blocks of other prompts scatter by their texts as well
                variance = max(variance - of_texts.value / cell.answers_per_s, variance * LEAST_OF_STEPS)
            raw.append((variance, freedom))
        apart.append(float(speeds.var(ddof=1)) if len(speeds) > 1 else np.nan)
        made.append(cell)
    return _with_variances(made, raw, apart)


def _with_variances(made: list[CellPilot], raw: list[tuple[float, int]], apart: list[float]) -> list[CellPilot]:
    known = [index for index, (variance, _) in enumerate(raw) if np.isfinite(variance)]
    steps = dict.fromkeys(range(len(made)), NOTHING)
    if known:
        variances, freedom = zip(*(raw[index] for index in known), strict=True)
        estimates = components.shrunk(variances, freedom, [made[index].concurrency for index in known])
        steps |= dict(zip(known, estimates, strict=True))
    with_steps = [replace(cell, steps=steps[index]) for index, cell in enumerate(made)]
    repeated = [index for index, variance in enumerate(apart) if np.isfinite(variance)]
    if not repeated:
        return with_steps
    explained = []
    for index in repeated:
        cell = with_steps[index]
        served = np.inf if cell.same_prompts else None
        explained.append(cell.variance(1, cell.window_s, served).value)
    of_machine = components.machine(
        [apart[index] for index in repeated], explained, [made[index].repeats for index in repeated]
    )
    return [replace(cell, machine=of_machine) for cell in with_steps]


def _answer_lengths(answers: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Return the mean and the longest answer of each workload, tokens; a first token comes from the prefill."""
    if answers.empty:
        return {}
    lengths: dict[str, tuple[float, float]] = {}
    for workload, rows in answers.groupby("workload"):
        tokens, count = (rows[name].to_numpy(np.float64) for name in ("tokens", "answers"))
        lengths[str(workload)] = float(tokens.sum() / count.sum()) + 1, float((tokens / count).max()) + 1
    return lengths


def _serve_the_same(answers: pd.DataFrame) -> bool:
    """Return whether a lab's repeats serve the same prompts; they do not where no answers are recorded."""
    if answers.empty:
        return False
    shares = []
    for _, of_cell in answers.groupby(["arm", "workload", "concurrency"]):
        served = [set(of_repeat["prompt_id"]) for _, of_repeat in of_cell.groupby("repeat")]
        shares += [len(one & other) / len(one | other) for one, other in itertools.combinations(served, 2)]
    return bool(shares) and float(np.median(shares)) > SAME


def _windows(cells: pd.DataFrame, blocks: pd.DataFrame, phases: Phases) -> float:
    """Return the length of a cell's window, s: the record's, that of its blocks, or the one that was asked for."""
    if "window_s" in cells:
        return float(pd.to_numeric(cells["window_s"]).mean())
    if len(blocks):
        return float(blocks.groupby(["workload", "concurrency", "repeat"])["seconds"].sum().mean())
    return phases.window_s[1] - phases.window_s[0]


def _rates(
    blocks: pd.DataFrame, workload: object, concurrency: object, repeats: list[int]
) -> NDArray[np.float64] | None:
    """Return tokens per second of each block, shape (repeats, blocks); None where they cannot be compared."""
    if blocks.empty:
        return None
    here = blocks[(blocks["workload"] == workload) & (blocks["concurrency"] == concurrency)]
    here = here[here["repeat"].isin(repeats)].sort_values(["repeat", "block"])
    rows = [part[["tokens", "seconds"]].to_numpy(np.float64) for _, part in here.groupby("repeat")]
    if not rows or len({len(row) for row in rows}) > 1:
        return None
    sums = joined(np.stack(rows), BLOCKS)
    rates: NDArray[np.float64] = sums[..., 0] / sums[..., 1]
    return rates if rates.shape[1] > 1 and (rates.sum(axis=1) > 0).all() else None
