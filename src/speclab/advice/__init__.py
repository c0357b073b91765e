"""From a lab's results to what to run: which arm at which load, as servers to start, with what it costs to be wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from speclab.advice import serve
from speclab.advice.base import Advice, Changeover, ChosenK, Line, Part, Regret, ServedArm
from speclab.advice.warnings import warnings
from speclab.engines import vllm_flags
from speclab.errors import UserError
from speclab.findings.choose_k import worth_measuring
from speclab.findings.policy import Choice, choices, switches
from speclab.findings.regret import regret
from speclab.findings.schedule import Schedule, schedule
from speclab.findings.speeds import MIX, Arms, equal_shares, mixed, parts_of, speeds
from speclab.findings.tokens_per_step_by_k import Drafter
from speclab.lab import BASELINE, Lab
from speclab.results import Results

__all__ = ["Advice", "advise", "advise_or_say_why"]

FORCED = "its acceptance is forced, and its text is not the target's"


def advise(results: Results, mix: Mapping[str, float] | None = None) -> Advice:
    """Return what a lab's results say to do.

    Parameters
    ----------
    results : Results
        The results.
    mix : mapping of str to float, optional
        Shares of the tokens that the traffic asks for, by workload; equal ones where not given.

    Raises
    ------
    UserError
        Nothing stands beside the baseline, or no speed-up passed its checks, at all or on a part of the mix.
    """
    lab, run = results.lab, set(results.tables.cells["arm"])
    if BASELINE not in run:
        problem = f"no results of the arm {BASELINE!r} (found: {', '.join(sorted(run))})"
        raise UserError(problem, f"run the arm {BASELINE!r} too")
    forced = [name for name in lab.arms if lab.arm(name).is_forced]
    usable = [name for name in lab.arms if name not in forced]
    k_by_arm = {name: lab.arm(name).k for name in lab.arms}
    places = speeds(results.findings, results.draws, [name for name in usable if name != BASELINE])
    known = [workload for workload in lab.workloads if workload in places]
    shares = dict(mix) if mix is not None else equal_shares(known)
    if missing := [workload for workload in shares if workload not in places]:
        raise UserError(f"no speed-up on {', '.join(missing)} passed its checks", f"give shares of {', '.join(known)}",
                        key="--mix")  # fmt: skip
    parts = parts_of(places, results.findings, shares)
    of_mix = mixed(places, parts)
    order = sorted(usable, key=lambda name: k_by_arm[name])
    tables = {workload: places[workload] for workload in known} | ({MIX: of_mix} if of_mix else {})
    advised = tuple(_part(name, table, lab, results.drafters, order, k_by_arm) for name, table in tables.items())
    named = sorted({served.arm for part in advised for served in part.served} - {BASELINE}, key=lab.arms.index)
    drafters = sorted({part.drafter for part in advised if part.drafter}, key=lab.arms.index)
    return Advice(
        lab=lab.name,
        source=results.source,
        mix=shares,
        parts=advised,
        regret=_regrets(places, of_mix, parts),
        k=_chosen_k(results),
        worth_measuring=_worth_measuring(results),
        left_out=dict.fromkeys(forced, FORCED),
        warnings=warnings(lab, advised, [lab.arm(name) for name in dict.fromkeys([*named, *drafters])]),
    )


def advise_or_say_why(results: Results) -> Advice:
    """Return what `advise` does, or advice with no part that says why there is none: what a page of the book needs."""
    try:
        return advise(results)
    except UserError as error:
        forced = [name for name in results.lab.arms if results.lab.arm(name).is_forced]
        return Advice(
            lab=results.lab.name, source=results.source, mix={}, parts=(), regret=(), k=_chosen_k(results),
            worth_measuring=_worth_measuring(results), left_out=dict.fromkeys(forced, FORCED), warnings=(),
            why_not=error.problem,
        )  # fmt: skip


def _part(
    name: str,
    table: Mapping[float, Arms],
    lab: Lab,
    drafters: Sequence[Drafter],
    order: Sequence[str],
    k_by_arm: Mapping[str, int],
) -> Part:
    made = choices(table, order)
    changes = switches(made, table)
    drafter = _worth_having(table, drafters)
    ranges: Schedule | None = None
    if drafter is not None:
        own = {at: {arm: arms[arm] for arm in (BASELINE, *drafter.arms.values()) if arm in arms}
               for at, arms in table.items()}  # fmt: skip
        alone = choices(own, order)
        most = vllm_flags.of(lab, lab.arm(drafter.name)).get("max-num-seqs")
        largest = most if isinstance(most, int) else max(lab.concurrencies)
        ranges = schedule(alone, switches(alone, own), k_by_arm, largest)
    return Part(
        name=name,
        served=tuple(_served(choice) for choice in made),
        changes=tuple(
            Changeover(below=each.below, above=each.above, value=each.value, low=each.low, high=each.high,
                   status=each.status)
            for each in changes
        ),
        not_known=tuple(at for at in lab.concurrencies if at not in table),
        drafter=drafter.name if drafter is not None else None,
        schedule=tuple(ranges) if ranges is not None and len(ranges) > 1 else None,
        lines=_lines(lab, made, drafter, ranges),
    )  # fmt: skip


def _served(choice: Choice) -> ServedArm:
    low, high = choice.speed.interval
    others = tuple(arm for arm in choice.ties if arm != choice.arm)
    return ServedArm(
        concurrency=int(choice.concurrency), arm=choice.arm, speed_up=choice.speed.value, low=_number(low),
        high=_number(high), ties=others, status=choice.status,
    )  # fmt: skip


def _worth_having(table: Mapping[float, Arms], drafters: Sequence[Drafter]) -> Drafter | None:
    """Return the drafter that gains most over all loads where it may be switched off; None where none gains."""

    def gain(drafter: Drafter) -> float:
        best = [
            max([1.0, *(arms[arm].value for arm in drafter.arms.values() if arm in arms)]) for arms in table.values()
        ]
        return sum(math.log(value) for value in best)

    most = max(drafters, key=gain, default=None)
    return most if most is not None and gain(most) > 0 else None


def _lines(lab: Lab, made: Sequence[Choice], drafter: Drafter | None, ranges: Schedule | None) -> tuple[Line, ...]:
    lines = []
    ks = {k for _, _, k in ranges or ()}
    if drafter is not None and ranges is not None and len(ks) > 1:
        arm = lab.arm(drafter.arms[max(ks)])
        lines.append(Line(purpose="one server for all loads", command=serve.line(lab, arm, ranges)))
    for name in dict.fromkeys(choice.arm for choice in made):
        at = [f"{choice.concurrency:g}" for choice in made if choice.arm == name]
        purpose = f"{name}, chosen at {', '.join(at)} in flight"
        lines.append(Line(purpose=purpose, command=serve.line(lab, lab.arm(name))))
    return tuple(lines)


def _regrets(
    places: Mapping[str, Mapping[float, Arms]],
    of_mix: Mapping[float, Arms],
    parts: Mapping[float, Mapping[str, float]],
) -> tuple[Regret, ...]:
    rows = regret(places, of_mix, parts).to_dict("records")
    return tuple(
        Regret.model_validate({**row, "low": _number(row["low"]), "high": _number(row["high"])}) for row in rows
    )


def _chosen_k(results: Results) -> tuple[ChosenK, ...]:
    chosen = results.k_curves[results.k_curves["chosen"].astype(bool)]
    return tuple(ChosenK.model_validate(row) for row in chosen[list(ChosenK.model_fields)].to_dict("records"))


def _worth_measuring(results: Results) -> dict[str, tuple[int, ...]]:
    by_drafter = results.k_curves.groupby("drafter", sort=False)
    return {str(drafter): tuple(worth_measuring(table)) for drafter, table in by_drafter}


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
