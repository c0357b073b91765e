"""A lab of our own: fitted on its baseline and one arm on one workload at two concurrencies, it predicts the rest.

What a drafter brings (tokens per step, how often it has a draft) is taken as measured, over all of an arm's cells that
passed their checks; what it costs is predicted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from speclab.errors import UserError
from speclab.findings.crossover import Crossing, crossover
from speclab.findings.pairs import OK, state
from speclab.lab import BASELINE
from speclab.predict.fit import Fit, Measured, Place, fit
from speclab.predict.parameters import Parameters
from speclab.predict.step_time import ALL, NO_DRAFT, Draft, ModelOptions, step_s
from speclab.predict.traffic import Traffic
from speclab.roofline.transformers import Transformer

Floats = NDArray[np.float64]

FREE = ("overhead_s", "flop_per_s")
"""What is fitted. Launches are held: a small head drafts in less than its bytes would take at the memory's rate, most
likely from the processor's cache, and a fit of launches runs to zero to make up for it."""
UNUSED = ("lookup_hit", "lookup_s", "row_s", "token_s")
SPREAD = 0.1
"""Relative standard deviation of a cell's step time from repeat to repeat, as this machine's repeats show it."""


@dataclass(frozen=True)
class Setting:
    """What the model has to know of a lab beside its results.

    Attributes
    ----------
    target : Transformer
    drafters : dict of str to (int, Transformer or None)
        Draft positions and network of each arm; None for a search of the text.
    traffic : dict of str to Traffic
        By workload.
    start : Parameters
        What is held, and where the fit begins.
    fitted_arm, fitted_workload : str
        The one arm whose cells the fit sees beside the baseline's, and on which workload.
    fitted_at : tuple of int
        The concurrencies that it sees.
    options : ModelOptions
        What the model leaves out or adds.
    """

    target: Transformer
    drafters: Mapping[str, tuple[int, Transformer | None]]
    traffic: Mapping[str, Traffic]
    start: Parameters
    fitted_arm: str
    fitted_workload: str
    fitted_at: tuple[int, int]
    options: ModelOptions = ALL

    def sees(self, arm: str, workload: str, concurrency: int) -> bool:
        """Return whether the fit sees a cell."""
        of_arm = arm == BASELINE or (arm, workload) == (self.fitted_arm, self.fitted_workload)
        return of_arm and concurrency in self.fitted_at


@dataclass(frozen=True, slots=True)
class Return:
    """What an arm's drafts bring on one workload.

    Attributes
    ----------
    tokens_per_step, draft_coverage : float
    """

    tokens_per_step: float
    draft_coverage: float


Returns = dict[tuple[str, str], Return]
"""By arm and workload."""


@dataclass(frozen=True)
class Calibrated:
    """The model of a lab.

    Attributes
    ----------
    setting : Setting
    calibration : Fit
    returns : dict of (arm, workload) to Return
    """

    setting: Setting
    calibration: Fit
    returns: Returns

    def step_s(self, arm: str, workload: str, rows: ArrayLike, using: Parameters | None = None) -> Floats:
        """Return what an arm's step takes, s."""
        parameters = using or self.calibration.parameters
        return _step_s(self.setting, self.returns, parameters, arm, workload, rows)

    def speed_up(self, arm: str, workload: str, rows: ArrayLike, using: Parameters | None = None) -> Floats:
        """Return tokens per second over the baseline's."""
        tokens = self.returns[arm, workload].tokens_per_step
        plain = self.step_s(BASELINE, workload, rows, using)
        return tokens * plain / self.step_s(arm, workload, rows, using)

    def crossing(self, arm: str, workload: str, grid: Sequence[int], using: Parameters | None = None) -> Crossing:
        """Return the crossover as the lab finds it, interpolated between its concurrencies."""
        return crossover(grid, self.speed_up(arm, workload, grid, using))


def calibrated(cells: pd.DataFrame, setting: Setting) -> Calibrated:
    """Return the model of a lab.

    Parameters
    ----------
    cells : pd.DataFrame
        Rows of `speclab.metrics.summary.Summary`.
    setting : Setting
        Shapes, traffic, what to fit on.

    Raises
    ------
    UserError
        No cell of the baseline passed its checks where the fit needs one, or too few cells did.
    """
    passed = cells[(state(cells, "step_time") == OK) & (state(cells, "tokens_per_step") == OK)]
    if not (passed["arm"] == BASELINE).any():
        found = ", ".join(sorted(passed["arm"].unique())) or "none"
        raise UserError(
            f"no cell of the arm {BASELINE!r} passed its checks (arms that did: {found})", "run the baseline"
        )
    numbers = ("tokens_per_step", "draft_coverage", "step_time")
    means = passed.assign(**{name: pd.to_numeric(passed[name]) for name in numbers})
    by_arm = means.groupby(["arm", "workload"])[list(numbers)].mean().reset_index().to_dict("records")
    returns = {
        (str(row["arm"]), str(row["workload"])): Return(float(row["tokens_per_step"]), float(row["draft_coverage"]))
        for row in by_arm
    }
    by_cell = means.groupby(["arm", "workload", "concurrency"])["step_time"].mean().reset_index().to_dict("records")
    measured = [
        _measured(
            setting, returns, row["arm"], row["workload"], int(row["concurrency"]), 1e-3 * float(row["step_time"])
        )
        for row in by_cell
        if setting.sees(row["arm"], row["workload"], int(row["concurrency"]))
    ]
    first, last = setting.fitted_at
    words = f"baseline, and {setting.fitted_arm} on {setting.fitted_workload}, at {first} and {last} in flight"
    return Calibrated(setting, fit(measured, setting.start, FREE, words, exact=UNUSED), returns)


def _measured(setting: Setting, returns: Returns, arm: str, workload: str, rows: int, seconds: float) -> Measured:
    def model(parameters: Parameters) -> float:
        return float(_step_s(setting, returns, parameters, arm, workload, rows))

    tokens = rows * (1 + (0 if arm == BASELINE else setting.drafters[arm][0]))
    place = Place(rows, tokens, setting.traffic[workload].context)
    return Measured(f"{arm}, {workload}, {rows} in flight", seconds, model, place, SPREAD)


def _step_s(
    setting: Setting, returns: Returns, parameters: Parameters, arm: str, workload: str, rows: ArrayLike
) -> Floats:
    draft, tokens = NO_DRAFT, 1.0
    if arm != BASELINE:
        k, shape = setting.drafters[arm]
        of = returns[arm, workload]
        draft, tokens = Draft(k, shape, of.draft_coverage), of.tokens_per_step
    return step_s(parameters, setting.target, rows, setting.traffic[workload], draft, tokens, setting.options)
