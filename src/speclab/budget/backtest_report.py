"""A backtest for the terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from speclab.budget.backtest import NEAR, WITHIN, Tested, verdict
from speclab.results import strict_json

CAPTION = (
    "half-widths of the 95% interval as shares of the speed-up; ratio: reached over forecast; workload: the forecast "
    "for prompts like these, and not for these alone; left out: how far each repeat lay from the others, in forecast "
    "standard errors"
)

ORDER_OF_PROMPTS = (
    "The repeats serve the same prompts in the same order. An interval that is resampled from blocks of a window "
    "counts that order as noise, and is then wider than the repeats lie apart."
)


def to_json(tested: Sequence[Tested]) -> str:
    """Return a backtest as one JSON object; null where there is no interval."""
    rows = strict_json.rows(pd.DataFrame([asdict(row) | {"distances": list(row.distances)} for row in tested]))
    return strict_json.dumps({**asdict(verdict(tested)), "speed_ups": rows})


def rendered(tested: Sequence[Tested]) -> RenderableType:
    """Return a backtest as sentences and a table, the worst forecasts first."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("speed-up", no_wrap=True)
    for name in ("forecast", "reached", "ratio", "workload", "left out"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in sorted(tested, key=_miss, reverse=True):
        known = np.isfinite(row.reached)
        table.add_row(
            f"{row.arm} {row.workload} {row.concurrency}",
            f"{row.forecast:.1%}",
            f"{row.reached:.1%}" if known else "-",
            f"{row.reached / row.forecast:.2f}" if known else "-",
            f"{row.of_workload:.1%}",
            " ".join(f"{distance:+.1f}" for distance in row.distances),
            style="" if _miss(row) <= np.log(NEAR) else "yellow",
        )
    same = [Text(ORDER_OF_PROMPTS)] if any(row.same_prompts for row in tested) else []
    return Group(Text(headline(tested), style="bold"), *same, Text(), table, Text(), Text(CAPTION))


def headline(tested: Sequence[Tested]) -> str:
    """Return what a backtest comes to, in words."""
    made = verdict(tested)
    return (
        f"Forecast from all repeats but one, beside what all of them reached: {made.near} of {made.places} half-widths "
        f"lie within a factor of {NEAR:g}, and the median reached is {made.ratio:.2f} times its forecast. Of "
        f"{made.repeats} repeats that were left out, {made.inside} lay within {WITHIN:g} forecast standard errors of "
        f"the others; their root mean square is {made.scatter:.2f} (1 where the forecast is right)."
    )


def _miss(row: Tested) -> float:
    """Return how far a forecast lies from what was reached, in logarithm; infinite without an interval."""
    return float(abs(np.log(row.reached / row.forecast))) if np.isfinite(row.reached) else np.inf
