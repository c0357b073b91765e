"""Speculation presets on the page's fleet. Every acceptance is assumed; each preset states its basis.

``mtp`` and ``draft-1b`` are the page's. ``eagle3`` and ``ngram`` take acceptance by position from what Lab 9 published
(`replications.published`): the mean length fixes a geometric curve. ``mtp-cut-off`` is ``mtp`` in passes of fewer than
`CUT_OFF_ROWS` rows only, which is what a serving engine's batch-size limit on speculation does.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, NamedTuple

from scipy.optimize import brentq

from speclab import lab as labs
from speclab.config import validated
from speclab.errors import UserError
from speclab.replications import published
from speclab.replications.chapter10.fleet.fleet import AssumedSpeculation, Charges, Fleet
from speclab.replications.chapter10.presets import ALPHA, fleet

PRESETS = ("baseline", "mtp", "draft-1b", "eagle3", "ngram", "mtp-cut-off")
PAGE = ("baseline", "mtp", "draft-1b")
"""The presets of the page's two tables, the baseline among them."""

CUT_OFF_ROWS = 128
"""Rows of a pass from which ``mtp-cut-off`` decodes without drafts. By `cut_offs`, passes over short contexts gain
up to 123 to 207 rows on the sweep's fleets, and passes over long contexts always."""

_REVISES = "coding-agent"  # its answers repeat their prompt, as Lab 9's revision workload does


class Assumed(NamedTuple):
    """How a preset speculates, and what that rests on."""

    speculation: AssumedSpeculation | None
    source: str


def assumed(preset: str, workload: str, cut_off_rows: int = CUT_OFF_ROWS) -> Assumed:
    """Return how a preset speculates on a workload, and where its acceptance is from.

    Parameters
    ----------
    preset : str
        One of `PRESETS`.
    workload : str
        Decides the acceptance of ``eagle3`` and ``ngram``.
    cut_off_rows : int
        Where ``mtp-cut-off`` stops speculating.

    Raises
    ------
    UserError
        There is no such preset, or the cut-off is below one row.
    """
    flat = f"alpha = {ALPHA} at every position, the source's assumption"
    if preset == "baseline":
        return Assumed(None, "nothing is drafted")
    if preset == "mtp":
        return Assumed(AssumedSpeculation(drafter="mtp-head-70b", k=3, alpha=ALPHA), flat)
    if preset == "draft-1b":
        return Assumed(AssumedSpeculation(drafter="llama-3.2-1b", k=4, alpha=ALPHA), flat)
    if preset == "mtp-cut-off":
        keys = {"drafter": "mtp-head-70b", "k": 3, "alpha": ALPHA, "below_rows": cut_off_rows}
        return Assumed(validated(AssumedSpeculation, keys), f"{flat}; in passes of fewer than {cut_off_rows} rows")
    if preset == "eagle3":
        return _eagle3("revision" if workload == _REVISES else "chat")
    if preset == "ngram":
        return _ngram("revision" if workload == _REVISES else "chat")
    raise UserError(
        f"unknown speculation preset {preset!r}", f"the known presets: {', '.join(PRESETS)}", key="speculation"
    )


def preset_fleet(
    device: str, preset: str, workload: str, charges: Charges | None = None, cut_off_rows: int = CUT_OFF_ROWS
) -> Fleet:
    """Return the page's fleet with a preset's speculation; `charges` is what its drafter pays besides its work.

    Raises
    ------
    UserError
        An unknown device or preset, or a model that does not fit the fleet.
    """
    speculation = assumed(preset, workload, cut_off_rows).speculation
    changed = {"speculation": speculation, "charges": charges or Charges()}
    return validated(Fleet, {**dict(fleet(device)), **changed})


@cache
def _eagle3(workload: str) -> Assumed:
    length = _published("eagle3-k3", workload, "reported_acceptance_length")
    # sum of r, r^2, r^3 is what a draft adds
    ratio = float(brentq(lambda r: r + r**2 + r**3 - (length - 1), 0.01, 1.0))
    curve = tuple(ratio**position for position in (1, 2, 3))
    source = f"Lab 9's published length on {workload}, {length:g} tokens a draft, on a geometric curve"
    return Assumed(AssumedSpeculation(drafter="eagle3-head-70b", k=3, marginal=curve), source)


@cache
def _ngram(workload: Literal["chat", "revision"]) -> Assumed:
    """Position 7 over position 0 gives the curve's ratio; the length, and its spread over workloads, the height."""
    figures = published.read("lab09").set_index("id")["value"]
    length = float(figures["n06"]) + (float(figures["n09"]) if workload == "revision" else 0.0)
    ratio = float(figures["n12" if workload == "revision" else "n10"]) ** (1 / 7)
    first = min(1.0, (length - 1) / sum(ratio**position for position in range(8)))
    curve = tuple(first * ratio**position for position in range(8))
    arm = labs.load("lab09").arm("ngram-k8").simulated
    if arm is None:
        raise UserError("missing", "add the simulator's assumptions", key="simulated")
    draft_rate = arm.draft_rate[workload]
    speculation = AssumedSpeculation(k=8, marginal=curve, draft_rate=draft_rate, host_s=arm.host_ms_per_step * 1e-3)
    source = (
        f"Lab 9's published {length:g} tokens a draft on {workload}, near geometric; a draft on {draft_rate:.0%} of "
        f"passes and {arm.host_ms_per_step:g} ms of host time a pass, as assumed in the simulated Lab 9"
    )
    return Assumed(speculation, source)


def _published(arm: str, workload: str, finding: str) -> float:
    table = published.read("lab09")
    return float(table.query("arm == @arm and workload == @workload and finding == @finding")["value"].iloc[0])
