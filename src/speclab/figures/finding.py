"""Any finding of the catalogue over concurrency: a first look at a new metric."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from speclab.errors import UserError
from speclab.figures.panels import (
    arm_legend,
    arm_lines,
    badge,
    concurrency_axis,
    drawn,
    failed_note,
    pick,
    source_of,
    workload_panels,
)
from speclab.figures.style import Styles, styled
from speclab.findings.catalogue import BY_NAME
from speclab.lab import BASELINE


@styled
def finding_over_concurrency(findings: pd.DataFrame, name: str, styles: Styles) -> Figure:
    """Draw one finding over concurrency, a panel for each workload and a line for each arm that has it.

    Parameters
    ----------
    findings : pd.DataFrame
        A lab's findings.
    name : str
        A finding of a cell or of a pair.
    styles : mapping of str to ArmStyle
        How each arm is drawn (`speclab.figures.style.styles_of`).

    Raises
    ------
    UserError
        The catalogue has no such finding over concurrency.
    """
    known = [finding.name for finding in BY_NAME.values() if finding.of in ("cell", "pair")]
    if name not in known:
        raise UserError(f"no finding over concurrency: {name!r}", f"there are {', '.join(known)}")
    finding = BY_NAME[name]
    rows = pick(findings, name)
    arms = drawn(rows, styles, *(() if finding.of == "cell" else (BASELINE,)))
    figure, panels = workload_panels(rows)
    for index, (workload, axis) in enumerate(panels.items()):
        here = rows[rows["workload"] == workload]
        arm_lines(axis, here, arms)
        concurrency_axis(axis, here["concurrency"])
        if index == 0:
            axis.set_ylabel(f"{finding.words}, {finding.unit}")
        if finding.over is not None and finding.unit == "x":
            axis.axhline(1.0, color="black", linewidth=1.0)
    if panels:
        arm_legend(figure, arms)
    badge(figure, f"bars: 95% intervals · {failed_note(rows)}{source_of(rows)}")
    return figure
