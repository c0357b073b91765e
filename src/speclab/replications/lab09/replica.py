"""Lab 9's fitted replica: the model fitted on three published figures of its baseline, compared with all the others.

Fitted: the time per token of the baseline at 1, 128 and 256 requests in flight. Taken as given: the baseline's
occupancy at these three (the report's own count of rows in a step), what a draft position adds at batch 1, acceptance
and prompt lengths as published, and the lab's assumed answer lengths. Everything else is predicted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from speclab.findings.crossover import Crossing, crossover
from speclab.lab import Lab
from speclab.predict.fit import Fit, Measured, Place, fit
from speclab.predict.parameters import H100_8B, Parameters
from speclab.predict.step_time import ALL, NO_DRAFT, Draft, ModelOptions, launch_s, step_s
from speclab.predict.traffic import Traffic, closed_loop
from speclab.roofline.transformers import transformer

Floats = NDArray[np.float64]

EAGLE, DRAFT, NGRAM = "eagle3-k3", "draft-1b-k3", "ngram-k8"
TARGET = transformer("llama-3-8b")
SHAPES = {EAGLE: transformer("eagle3-head-8b"), DRAFT: transformer("llama-3.2-1b"), NGRAM: None}
FREE = ("byte_per_s", "flop_per_s")
UNUSED = ("launch_s", "lookup_hit", "row_s")
FITTED_ON = "time per token of Lab 9's baseline at 1, 128 and 256 in flight"
SPREAD = 0.01
"""Assumed relative error of the report's times per token, which it prints to three digits or fewer."""

K = {EAGLE: 3, DRAFT: 3, NGRAM: 8}


@dataclass(frozen=True)
class FittedReplica:
    """The fitted model of Lab 9.

    Attributes
    ----------
    calibration : Fit
        Its parameters.
    published : Series of float
        The report's figures by id.
    traffic : dict of str to Traffic
        Prompts and answers of each workload.
    draft_rate : dict of str to float
        Assumed share of n-gram's row-steps with a draft, by workload.
    grid : tuple of int
        The lab's concurrencies.
    options : ModelOptions
        What the model leaves out.
    """

    calibration: Fit
    published: pd.Series[float]
    traffic: Mapping[str, Traffic]
    draft_rate: Mapping[str, float]
    grid: tuple[int, ...]
    options: ModelOptions = ALL

    def rows(self, concurrency: ArrayLike) -> Floats:
        """Return the rows of a step: the baseline's published occupancy, interpolated in log concurrency."""
        return _rows(self.published, concurrency)

    def tokens_per_step(self, arm: str, workload: str = "chat") -> float:
        """Return the tokens that a row keeps per step, as published; n-gram's with the assumed draft rate."""
        at = self.published
        if arm == EAGLE:
            return float(at["a02"] if workload == "chat" else at["a03"])
        if arm == DRAFT:
            return float(at["a02"] / (1 - at["a04"]))
        # its range over the workloads is published: 2.00 a draft on chat, and times that factor on revision
        length = at["n06"] * (at["n09"] if workload == "revision" else 1)
        return float(1 + self.draft_rate[workload] * (length - 1))

    def step_s(
        self, concurrency: ArrayLike, arm: str | None = None, workload: str = "chat", using: Parameters | None = None
    ) -> Floats:
        """Return the time of a step, s; the baseline's if no arm is given."""
        parameters = using or self.calibration.parameters
        rows = self.rows(concurrency)
        draft, tokens = NO_DRAFT, 1.0
        if arm is not None:
            draft, tokens = self._draft(arm, workload, parameters), self.tokens_per_step(arm, workload)
        return step_s(parameters, TARGET, rows, self.traffic[workload], draft, tokens, self.options)

    def speed_up(
        self, concurrency: ArrayLike, arm: str, workload: str = "chat", using: Parameters | None = None
    ) -> Floats:
        """Return tokens per second over the baseline's at the same concurrency."""
        plain = self.step_s(concurrency, None, workload, using)
        return self.tokens_per_step(arm, workload) * plain / self.step_s(concurrency, arm, workload, using)

    def throughput(self, concurrency: ArrayLike, arm: str | None = None, using: Parameters | None = None) -> Floats:
        """Return tokens per second of all rows on chat."""
        tokens = self.tokens_per_step(arm) if arm else 1.0
        return self.rows(concurrency) * tokens / self.step_s(concurrency, arm, using=using)

    def crossing(self, arm: str, using: Parameters | None = None) -> Crossing:
        """Return the crossover as a lab finds it: interpolated between its concurrencies, up to twice the last."""
        grid = [*self.grid, 2 * self.grid[-1]]
        return crossover(grid, self.speed_up(grid, arm, using=using))

    def launch_s(self, arm: str, using: Parameters | None = None) -> float:
        """Return the launch part of a draft position, s, from what the report says a position adds at batch 1."""
        parameters = using or self.calibration.parameters
        shape = SHAPES[arm]
        if shape is None:
            return 0.0
        added_s = 1e-3 * float(self.published["d04" if arm == EAGLE else "d02"])
        rows = float(self.rows(1))
        tokens = self.tokens_per_step(arm)
        # batch 1 measures the launch, whatever grows with the batch: no option is left out here
        return max(0.0, launch_s(parameters, TARGET, shape, K[arm], added_s, self.traffic["chat"], tokens, rows))

    def _draft(self, arm: str, workload: str, parameters: Parameters) -> Draft:
        draft_rate = self.draft_rate[workload] if arm == NGRAM else 1.0
        return Draft(K[arm], SHAPES[arm], draft_rate, self.launch_s(arm, parameters))


def fit_replica(
    published: pd.DataFrame,
    lab: Lab,
    *,
    options: ModelOptions = ALL,
    start: Parameters = H100_8B,
    answer: float | None = None,
    free: Sequence[str] = FREE,
) -> FittedReplica:
    """Fit the model to Lab 9's baseline.

    Parameters
    ----------
    published : pd.DataFrame
        As `speclab.replications.published.read` gives it.
    lab : Lab
        The simulated lab, for its assumptions: answer lengths, n-gram's draft rate, concurrencies.
    options : ModelOptions
        What the model leaves out, to see how much it matters.
    start : Parameters
        Held parameters, and the start of the fit.
    answer : float, optional
        Mean answer length on every workload instead of the lab's, tokens.
    free : sequence of str
        What is fitted.

    Raises
    ------
    UserError
        A figure that the fit needs is missing.
    """
    figures = published.set_index("id")["value"].astype(float)
    assert lab.simulated is not None
    answers = {str(workload): lengths for workload, lengths in lab.simulated.answers.items()}
    traffic = {
        workload: closed_loop(
            figures[prompt], answer or answers[workload].mean_tokens, answers[workload].cv,
            lab.sampling.max_tokens,
        )
        for workload, prompt in (("chat", "w01"), ("completion", "w02"), ("revision", "w03"))
    }  # fmt: skip
    ngram = lab.arm(NGRAM).simulated
    assert ngram is not None
    calibration = fit(_measured(figures, traffic["chat"], options), start, free, FITTED_ON, exact=UNUSED)
    draft_rate = {str(workload): share for workload, share in ngram.draft_rate.items()}
    return FittedReplica(calibration, figures, traffic, draft_rate, lab.concurrencies, options)


def _measured(figures: pd.Series[float], traffic: Traffic, options: ModelOptions) -> list[Measured]:
    """Return the baseline's times per token: at batch 1 and 256 as published, at 128 from the throughput's ratio."""
    top = figures["b11"] * figures["b12"]
    seconds = {1: 1e-3 * figures["b01"], 128: figures["b10"] / (top / figures["b04"]), 256: 1 / figures["b12"]}

    return [
        _time_per_token(f"baseline at {concurrency}", value, float(_rows(figures, concurrency)), traffic, options)
        for concurrency, value in seconds.items()
    ]


def _time_per_token(label: str, seconds: float, rows: float, traffic: Traffic, options: ModelOptions) -> Measured:
    def model(parameters: Parameters) -> float:
        return float(step_s(parameters, TARGET, rows, traffic, options=options))

    return Measured(label, float(seconds), model, Place(rows, rows, traffic.context), SPREAD)


def _rows(figures: pd.Series[float], concurrency: ArrayLike) -> Floats:
    in_flight = np.asarray(concurrency, dtype=np.float64)
    known = np.array([1.0, 128.0, 256.0])
    share = np.interp(np.log(in_flight), np.log(known), figures[["b06", "b10", "b11"]].to_numpy(dtype=float) / known)
    return np.asarray(in_flight * share, dtype=np.float64)
