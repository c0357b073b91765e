"""Run a lab: its arms in turn within each repeat, or side by side where the lab says so."""

from __future__ import annotations

from collections.abc import Sequence

from speclab.results import lab_tables
from speclab.run.arms import ArmStarting, run, tables_of
from speclab.run.plan import ArmPlan
from speclab.run.session import Progress


def run_lab(
    plans: Sequence[ArmPlan],
    *,
    progress: Progress | None = None,
    starting: ArmStarting | None = None,
    selftest: bool = True,
) -> list[lab_tables.Tables]:
    """Run what is missing of some arms of one lab and return each arm's tables.

    An arm's tables are made as soon as its last repeat has been run, so that a whole arm outlives an interruption.

    Parameters
    ----------
    plans : sequence of ArmPlan
        The arms; all of the same lab and engine.
    progress : callable, optional
        Told how far each cell is (`speclab.run.session.Progress`).
    starting : callable, optional
        Told how far the start of a server is (`speclab.run.arms.ArmStarting`).
    selftest : bool
        Measure first what this client sees cleanly (`speclab.run.run`).

    Raises
    ------
    UserError
        As for `speclab.run.run`.
    """
    groups = [list(plans)] if plans and plans[0].lab.side_by_side else [[plan] for plan in plans]
    last_repeat = {plan.arm.arm: max(cell.repeat for cell in plan.cells) for plan in plans}
    tables: list[lab_tables.Tables] = []
    for repeat in range(max(last_repeat.values(), default=-1) + 1):
        for group in groups:
            run(*group, repeat=repeat, progress=progress, starting=starting, selftest=selftest)
            tables += [tables_of(plan) for plan in group if last_repeat[plan.arm.arm] == repeat]
    return tables
