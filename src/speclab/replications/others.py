"""Other people's measurements of the same model, each beside the same figure of a lab.

Nothing here says who is right: the texts, the heads, the versions and the caps on answers differ, and an acceptance
without these means little. Where the device differs, only figures of the text are compared.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from speclab.findings.pairs import OK
from speclab.results.lab import Results

COLUMNS = [
    *("id", "finding", "quantity", "method", "k", "workload", "concurrency", "position", "unit", "setting"),
    *("published", "ours", "low", "high", "how", "difference", "kind", "source"),
]

OF_TEXT = ("tokens_per_step", "reported_acceptance_length", "acceptance_by_position")
"""Findings that do not depend on the device."""

_BY_K = {
    "tokens_per_step": ("tokens_per_step", "tokens_low", "tokens_high"),
    "reported_acceptance_length": ("tokens_per_step", "tokens_low", "tokens_high"),
    "time_per_output_token": ("ms_per_token", "low", "high"),
}
"""The columns of the curves that hold the figure of a k that no arm has; the second only for a drafter that drafts on
every step, whose counters then see every step."""


def by_others(results: Results, measured: pd.DataFrame) -> pd.DataFrame:
    """Return other people's measurements of a lab's target beside its own (`COLUMNS`).

    Parameters
    ----------
    results : Results
        The lab's results.
    measured : pd.DataFrame
        `speclab.replications.published.read("others_measured")`.
    """
    speculating = [arm for arm in map(results.lab.arm, results.lab.arms) if arm.speculation and not arm.is_forced]
    arms = {(str(arm.speculation.method), arm.k): arm.arm for arm in speculating if arm.speculation}
    device = results.lab.simulated.device if results.lab.simulated else ""
    model = results.lab.target.model.rsplit("/", 1)[-1]
    return others(results.findings, results.k_curves, measured, arms, model, device)


def others(
    findings: pd.DataFrame,
    curves: pd.DataFrame,
    measured: pd.DataFrame,
    arms: Mapping[tuple[str, int], str],
    model: str,
    device: str,
) -> pd.DataFrame:
    """Return each published measurement for which the lab has a figure, with that figure.

    Parameters
    ----------
    findings : pd.DataFrame
        A lab's findings.
    curves : pd.DataFrame
        Its `speclab.findings.choose_k.curves`; may be empty.
    measured : pd.DataFrame
        `speclab.replications.published.read("others_measured")`.
    arms : mapping of (str, int) to str
        The lab's arms by method and k.
    model : str
        The lab's target as those tables name it (``Llama-3.1-8B-Instruct``).
    device : str
        Slug of the lab's device (``h100-sxm``).

    Returns
    -------
    pd.DataFrame
        `COLUMNS`; ``difference`` is ours over published, less 1. ``how`` says whether ours is an arm's own, or read at
        a k that none has. Acceptance is taken where the lab holds the most drafts, time at the fewest in flight, unless
        the published row names its concurrency. Rows without a figure of ours are left out.
    """
    rows = []
    for row in measured[(measured["model"] == model) & measured["finding"].notna()].to_dict("records"):
        same_device = isinstance(row["device"], str) and device.split("-")[0] in row["device"].lower()
        if not isinstance(row["workload"], str) or not (same_device or row["finding"] in OF_TEXT):
            continue
        ours = _arms_own(findings, row, arms) or _read_at_k(curves, row, arms)
        if ours is not None:
            value, low, high, how = ours
            setting = ", ".join(
                part for part in (row["device"], row["engine"], row["dataset"]) if isinstance(part, str)
            )
            rows.append(
                {**row, "setting": setting, "published": row["value"], "ours": value, "low": low, "high": high,
                 "how": how, "difference": value / row["value"] - 1}
            )  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS)


Ours = tuple[float, float, float, str]


def _arms_own(findings: pd.DataFrame, row: Mapping[Hashable, Any], arms: Mapping[tuple[str, int], str]) -> Ours | None:
    arm = arms.get((row["method"], row["k"]))
    here = findings[
        (findings["finding"] == row["finding"])
        & (findings["arm"] == arm)
        & (findings["workload"] == row["workload"])
        & (findings["status"] == OK)
    ]
    if pd.notna(row["position"]):
        here = here[here["position"] == row["position"]]
    if pd.notna(row["concurrency"]):
        here = here[here["concurrency"] == row["concurrency"]]
    if here.empty:
        return None
    in_order = here.sort_values("concurrency", kind="stable")
    nearest = in_order.iloc[-1 if row["finding"] in OF_TEXT else 0]
    return float(nearest["value"]), float(nearest["low"]), float(nearest["high"]), "arm"


def _read_at_k(curves: pd.DataFrame, row: Mapping[Hashable, Any], arms: Mapping[tuple[str, int], str]) -> Ours | None:
    finding, method = str(row["finding"]), str(row["method"])
    if finding not in _BY_K or (finding == "reported_acceptance_length" and method == "ngram"):
        return None
    drafters = {arm for (drafter_method, _), arm in arms.items() if drafter_method == method}
    here = curves[
        curves["drafter"].isin(drafters)
        & (curves["workload"] == row["workload"])
        & (curves["k"] == row["k"])
        & (curves["status"] == OK)
    ]
    if here.empty:
        return None
    nearest = here.sort_values("concurrency", kind="stable").iloc[0]
    value, low, high = (float(nearest[column]) for column in _BY_K[finding])
    return value, low, high, str(nearest["how"])
