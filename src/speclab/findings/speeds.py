"""Speed-ups with their resampled values, place by place, and those of mixed traffic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from speclab.errors import UserError
from speclab.findings.intervals import DRAWS, Draws, DrawsOf, bounds
from speclab.findings.pairs import OK
from speclab.lab import BASELINE

MIX = "mix"
"""Name under which mixed traffic stands among the workloads."""


@dataclass(frozen=True, slots=True, eq=False)
class Speed:
    """Throughput over the baseline's at one place.

    Attributes
    ----------
    value : float
        The speed-up.
    draws : ndarray of float64, shape (draws,), optional
        Its resampled values; None where no noise is known.
    """

    value: float
    draws: Draws | None

    def over(self, other: Speed) -> Speed:
        """Return the quotient of two arms at one place, whose draws were resampled together."""
        if self.draws is None and other.draws is None:
            return Speed(self.value / other.value, None)
        mine, theirs = (speed.value if speed.draws is None else speed.draws for speed in (self, other))
        with np.errstate(all="ignore"):
            return Speed(self.value / other.value, np.broadcast_to(np.divide(mine, theirs), (DRAWS,)))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval; NaN where no noise is known."""
        return (np.nan, np.nan) if self.draws is None else bounds(self.draws)


BY_ITSELF = Speed(1.0, None)
"""The baseline over itself."""

Arms = Mapping[str, Speed]
"""The arms that are known at one place, the baseline among them."""

Places = Mapping[str, Mapping[float, Arms]]
"""Workload, requests in flight, arm."""


def speeds(findings: pd.DataFrame, draws_of: DrawsOf, arms: Sequence[str]) -> Places:
    """Return the speed-up of some arms at each place where the baseline and at least one of them passed their checks.

    Parameters
    ----------
    findings : pd.DataFrame
        A lab's findings, of one source.
    draws_of : callable
        Resampled speed-ups.
    arms : sequence of str
        Arms that may be chosen; the baseline is always one.

    Raises
    ------
    UserError
        No place is left, with what stands against it.
    """
    rows = findings[(findings["finding"] == "speed_up") & findings["arm"].isin(arms)]
    if rows.empty:
        there = ", ".join(sorted(findings["arm"].dropna().unique())) or "none"
        remedy = f"run {BASELINE!r} and at least one arm that speculates on the same workload and concurrency"
        raise UserError(f"no arm stands beside the baseline (arms with results: {there})", remedy)
    usable = rows[rows["status"] == OK]
    if usable.empty:
        states = ", ".join(f"{len(of)} {status}" for status, of in rows.groupby("status"))
        raise UserError(
            f"no speed-up passed its checks ({states})",
            "`speclab check LAB` says of each which check failed, or why a cell did not run, and what to do about it",
        )
    places: dict[str, dict[float, dict[str, Speed]]] = {}
    for arm, workload, concurrency, value in usable[["arm", "workload", "concurrency", "value"]].itertuples(
        index=False
    ):
        drawn = draws_of("speed_up", arm=arm, workload=workload, concurrency=concurrency)
        at = places.setdefault(str(workload), {}).setdefault(float(concurrency), {BASELINE: BY_ITSELF})
        at[str(arm)] = Speed(float(value), drawn)
    return {workload: dict(sorted(at.items())) for workload, at in places.items()}


def parts_of(places: Places, findings: pd.DataFrame, shares: Mapping[str, float]) -> dict[float, dict[str, float]]:
    """Return which part of the baseline's time each workload takes in mixed traffic, by concurrency.

    `shares` are shares of the tokens that the traffic asks for; the time for them is the share over the baseline's
    throughput. Only concurrencies at which all parts of the mix are known.

    Parameters
    ----------
    places : mapping
        From `speeds`.
    findings : pd.DataFrame
        The same lab's findings.
    shares : mapping of str to float
        By workload; above 0, their sum is 1.
    """
    throughput = findings[(findings["finding"] == "system_throughput") & (findings["arm"] == BASELINE)]
    known = throughput[throughput["status"] == OK]
    rates = {(w, c): float(v) for w, c, v in known[["workload", "concurrency", "value"]].itertuples(index=False)}
    common = set.intersection(*(set(places.get(workload, {})) for workload in shares))
    parts: dict[float, dict[str, float]] = {}
    for concurrency in sorted(common):
        if all((workload, concurrency) in rates for workload in shares):
            times = {workload: share / rates[workload, concurrency] for workload, share in shares.items()}
            parts[concurrency] = {workload: time / sum(times.values()) for workload, time in times.items()}
    return parts


def mixed(places: Places, parts: Mapping[float, Mapping[str, float]]) -> dict[float, Arms]:
    """Return the speed-up of mixed traffic on one server, by concurrency and arm.

    At a given number of requests in flight the time for the traffic's tokens is each share over its throughput, added
    up; the speed-up is the baseline's such time over the arm's. That is exact where a step takes the same time whoever
    is in the batch, and an approximation otherwise.

    Parameters
    ----------
    places : mapping
        From `speeds`.
    parts : mapping
        From `parts_of`.
    """
    result: dict[float, Arms] = {}
    for concurrency, of in parts.items():
        at = {workload: places[workload][concurrency] for workload in of}
        arms = [arm for arm in next(iter(at.values())) if all(arm in arms_there for arms_there in at.values())]
        result[concurrency] = {
            arm: BY_ITSELF if arm == BASELINE else together({workload: at[workload][arm] for workload in of}, of)
            for arm in arms
        }
    return result


def together(by_workload: Mapping[str, Speed], parts: Mapping[str, float]) -> Speed:
    """Return the speed-up of all workloads together; `parts` is each one's part of the baseline's time."""
    value = 1 / sum(parts[workload] / speed.value for workload, speed in by_workload.items())
    if all(speed.draws is None for speed in by_workload.values()):
        return Speed(value, None)
    with np.errstate(all="ignore"):
        inverse = [
            parts[workload] / (speed.value if speed.draws is None else speed.draws)
            for workload, speed in by_workload.items()
        ]
        return Speed(value, 1 / np.sum(np.broadcast_arrays(*inverse), axis=0))


def equal_shares(workloads: Sequence[str]) -> dict[str, float]:
    """Return the mix in which each workload asks for as many tokens as the others."""
    return dict.fromkeys(workloads, 1 / len(workloads))
