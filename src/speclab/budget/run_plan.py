"""A plan as a file: the phases of each cell and the repeats, which ``speclab run LAB --plan FILE`` follows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self

import yaml
from pydantic import Field, model_validator

from speclab import whole
from speclab.budget.spend import Spending
from speclab.config import Chosen, read_yaml, validated
from speclab.errors import UserError
from speclab.lab import BASELINE, Concurrency, Count, Lab, Name, Phases, WorkloadName

HEADER = """\
# Made by `speclab plan {lab}`; run it with `speclab run {lab} --plan {name}`.
# Its cells have other phases than the lab's file gives them, so they are a trial: records go to .build/trials.
"""


class PlannedCell(Chosen):
    """One arm at one place, and its phases."""

    arm: Name
    workload: WorkloadName
    concurrency: Concurrency
    phases: Phases


class RunPlan(Chosen):
    """What ``speclab plan`` wrote."""

    lab: Name
    pilot: str
    """The source of the records that it was made from."""
    half_width: Annotated[float, Field(gt=0, lt=1)]
    """Forecast for each speed-up, as a share of it."""
    hours: Annotated[float, Field(gt=0, le=10_000)]
    """Forecast: cells, ramps and the starts of servers."""
    repeats: Count
    cells: tuple[PlannedCell, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _beside_a_baseline(self) -> Self:
        places = [(cell.arm, cell.workload, cell.concurrency) for cell in self.cells]
        if twice := [place for place in places if places.count(place) > 1]:
            raise ValueError(f"cells holds {' '.join(map(str, twice[0]))} twice")
        for arm, workload, concurrency in places:
            if (BASELINE, workload, concurrency) not in places:
                raise ValueError(f"cells holds {arm} {workload} {concurrency} without the {BASELINE} beside it")
        return self

    def phases(self, arm: str) -> Mapping[tuple[str, int], Phases]:
        """Return the phases of one arm's cells by workload and concurrency; empty for an arm that is not planned."""
        return {(cell.workload, cell.concurrency): cell.phases for cell in self.cells if cell.arm == arm}


def of(spending: Spending, lab: Lab) -> RunPlan:
    """Return a spending as a plan.

    Raises
    ------
    UserError
        It buys nothing.
    """
    if not spending.shares:
        raise UserError("the plan holds no cell", "give more --hours, or a wider --half-width", key="--write")
    cells = []
    for cell in spending.pilot.cells:
        part = spending.shares.get(cell.where)
        if part is not None and cell.arm in part.window_s:
            first_s, last_s = float(math.ceil(cell.ramp_s)), lab.phases.drop_last_s
            length_s = first_s + part.window_s[cell.arm] + last_s
            phases = Phases(length_s=length_s, drop_first_s=first_s, drop_last_s=last_s)
            place = {"arm": cell.arm, "workload": cell.workload, "concurrency": cell.concurrency}
            cells.append({**place, "phases": phases.model_dump()})
    content = {
        "lab": lab.name,
        "pilot": spending.pilot.source,
        "half_width": spending.half_width,
        "hours": round(spending.hours, 2) or 0.01,
        "repeats": spending.repeats,
        "cells": cells,
    }
    return validated(RunPlan, content)


def write(plan: RunPlan, file: Path) -> None:
    """Write a plan.

    Raises
    ------
    UserError
        The folder cannot be written.
    """
    content = plan.model_dump(mode="json")
    cells = content.pop("cells")
    lines = [f"- {yaml.safe_dump(cell, default_flow_style=True, sort_keys=False, width=1000)}" for cell in cells]
    head = yaml.safe_dump(content, sort_keys=False, width=1000)
    text = f"{HEADER.format(lab=plan.lab, name=file.name)}{head}cells:\n{''.join(lines)}"
    whole.write(file, text, "the plan")


def read(file: Path, lab: Lab) -> RunPlan:
    """Return the plan in a file.

    Raises
    ------
    UserError
        The file holds a mistake, is another lab's plan, or names what the lab does not hold.
    """
    plan = validated(RunPlan, read_yaml(file), file)
    if plan.lab != lab.name:
        remedy = f"this is no plan of {lab.name}: `speclab plan {lab.name} --write FILE` writes one"
        raise UserError(f"found {plan.lab!r}", remedy, file=file, key="lab")
    for arm in dict.fromkeys(cell.arm for cell in plan.cells):
        if arm not in lab.arms:
            raise UserError(f"unknown arm {arm!r}", f"the arms of {lab.name}: {', '.join(lab.arms)}",
                            file=file, key="cells")  # fmt: skip
        known = {(workload, concurrency) for _, workload, concurrency in lab.grid(lab.arm(arm))}
        for workload, concurrency in plan.phases(arm):
            if (workload, concurrency) not in known:
                raise UserError(f"found {arm} {workload} {concurrency}", f"{arm} of {lab.name} does not run there",
                                file=file, key="cells")  # fmt: skip
    return plan
