"""Speed-up, break-even length, crossover and best k from calibrated parameters, with how far they can be trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from speclab.errors import UserError
from speclab.predict.fit import Fit
from speclab.predict.parameters import Parameters
from speclab.predict.step_time import ALL, NO_DRAFT, Draft, ModelOptions, step_s
from speclab.predict.traffic import Traffic
from speclab.roofline.speculation import tokens_per_pass
from speclab.roofline.transformers import Transformer

Floats = NDArray[np.float64]

DRAWS = 200
"""Parameter sets that an interval is taken from."""

INTERVAL = (0.05, 0.95)
"""Share of them below its two ends."""

MOST_IN_FLIGHT = 4096
"""Up to where a crossover is sought."""

_GRID = np.geomspace(1, MOST_IN_FLIGHT, 97)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the model.

    Attributes
    ----------
    target : Transformer
        The model that is served.
    draft : Draft
        Who drafts; its k is the most that is tried.
    acceptance : tuple of float
        Marginal acceptance by draft position.
    traffic : Traffic
        What the rows hold.
    options : ModelOptions
        What the model leaves out or adds.
    """

    target: Transformer
    draft: Draft
    acceptance: tuple[float, ...]
    traffic: Traffic
    options: ModelOptions = ALL

    def step_s(self, parameters: Parameters, rows: ArrayLike, k: int) -> Floats:
        """Return what a step of k draft positions takes, s; of the baseline's where k is 0."""
        draft, tokens = self.at(k) if k else (NO_DRAFT, 1.0)
        return step_s(parameters, self.target, rows, self.traffic, draft, tokens, self.options)

    def at(self, k: int) -> tuple[Draft, float]:
        """Return the draft of k positions and the tokens per step that it brings, the curve cut at k."""
        draft = replace(self.draft, k=k)
        return draft, tokens_per_pass(self.acceptance[:k], self.draft.draft_rate)


@dataclass(frozen=True, slots=True)
class Crossover:
    """The requests in flight above which speculation loses.

    Attributes
    ----------
    value, low, high : float or None
        Where the speed-up falls to 1, and between which values in nine of ten draws of the parameters. None: not up to
        `MOST_IN_FLIGHT`, or, for `low`, already at one request.
    status : {'ok', 'always above', 'always below'}
    """

    value: float | None
    low: float | None
    high: float | None
    status: str


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the model says, an entry of each list for a concurrency.

    Attributes
    ----------
    concurrency : list of float
        Requests in flight, every one of them a row of each step.
    speed_up, low, high : list of float
        Tokens per second over the baseline's, and between which values in nine of ten draws.
    break_even_length : list of float
        Tokens per step needed for a speed-up of 1.
    step_s, baseline_step_s : list of float
        What a step takes, s.
    best_k : list of int
        Draft positions with the highest speed-up, 0 for none, of those for which acceptance is given.
    crossover : Crossover
    warnings : list of str
        What of this lies outside what the parameters were fitted on.
    """

    concurrency: list[float]
    speed_up: list[float]
    low: list[float]
    high: list[float]
    break_even_length: list[float]
    step_s: list[float]
    baseline_step_s: list[float]
    best_k: list[int]
    crossover: Crossover
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class Widening:
    """How much wider an interval is where nothing was measured.

    What the model leaves out is taken to wander from place to place: with each doubling of the distance from what was
    fitted, an independent error of the size that the model has from one source to the next. Variances add, so the
    standard deviation grows with the root of the logarithm of the distance, and inside it is 0.

    Attributes
    ----------
    discrepancy : float
        Standard deviation of the logarithm of a speed-up, from source to source (`speclab.predict.errors.discrepancy`).
    carried : float
        Doublings to the device and the target that are asked about.
    """

    discrepancy: float = 0.0
    carried: float = 0.0

    def sigma(self, calibration: Fit, question: Question, rows: Floats) -> Floats:
        """Return the standard deviation of the logarithm of a speed-up that comes on top, in the shape of `rows`."""
        return self.discrepancy * np.sqrt(self.carried + doublings(calibration, question, rows))


NONE = Widening()


def predict(
    calibration: Fit, question: Question, concurrency: Sequence[float], draws: int = DRAWS, widening: Widening = NONE
) -> Prediction:
    """Return what the calibrated model says of one drafter.

    Parameters
    ----------
    calibration : Fit
        The parameters and their uncertainty.
    question : Question
        Models, acceptance, traffic.
    concurrency : sequence of float
        Requests in flight to answer for.
    draws : int
        Parameter sets that the intervals are taken from.
    widening : Widening
        What the intervals gain outside of what was fitted.

    Raises
    ------
    UserError
        The acceptance is not a falling curve of shares, one for each of k positions, or a concurrency is below 1.
    """
    check(question, concurrency)
    parameters = calibration.parameters
    at = np.asarray(concurrency, dtype=np.float64)
    k = question.draft.k
    with_drafts, without = (question.step_s(parameters, at, tried) for tried in (k, 0))
    each_k = np.array([speed_up(parameters, question, at, tried) for tried in range(k + 1)])
    drawn = calibration.draws(draws) or [parameters] * draws
    off = normals(len(drawn))
    sigma, on_grid = (widening.sigma(calibration, question, rows) for rows in (at, _GRID))
    curves = np.array(
        [speed_up(other, question, at, k) * np.exp(z * sigma) for other, z in zip(drawn, off, strict=True)]
    )
    low, high = np.quantile(curves, INTERVAL, axis=0)
    return Prediction(
        concurrency=at.tolist(),
        speed_up=each_k[k].tolist(),
        low=low.tolist(),
        high=high.tolist(),
        break_even_length=(with_drafts / without).tolist(),
        step_s=with_drafts.tolist(),
        baseline_step_s=without.tolist(),
        best_k=np.argmax(each_k, axis=0).tolist(),
        crossover=_crossover(parameters, drawn, question, np.exp(np.outer(off, on_grid))),
        warnings=[*outside(calibration, question, at), *_widened(widening, float(sigma.max()))],
    )


def speed_up(parameters: Parameters, question: Question, rows: ArrayLike, k: int) -> Floats:
    """Return the speed-up of k draft positions over none, in the shape of `rows`."""
    _, tokens = question.at(k)
    return tokens * question.step_s(parameters, rows, 0) / question.step_s(parameters, rows, k)


def crossing(parameters: Parameters, question: Question, off: Floats | float = 1.0) -> float:
    """Return where the speed-up first falls to 1: 0 where it is never above, infinite where it is always.

    `off` is what the speed-ups at `_GRID` are multiplied by.
    """
    ratio = speed_up(parameters, question, _GRID, question.draft.k) * off
    if ratio[0] <= 1:
        return 0.0
    below = np.flatnonzero(ratio <= 1)
    if not len(below):
        return float("inf")
    after = int(below[0])
    share = (ratio[after - 1] - 1) / (ratio[after - 1] - ratio[after])
    return float(_GRID[after - 1] * (_GRID[after] / _GRID[after - 1]) ** share)


def check(question: Question, concurrency: Sequence[float]) -> None:
    """Say what is wrong with a question.

    Raises
    ------
    UserError
        As for `predict`.
    """
    acceptance, k = question.acceptance, question.draft.k
    given = ",".join(f"{share:g}" for share in acceptance)
    outside_shares = [share for share in acceptance if not 0 <= share <= 1]
    if outside_shares:
        raise UserError(f"found {outside_shares[0]:g}", "acceptance is a share: give 0 to 1", key="acceptance")
    rising = [at for at in range(1, len(acceptance)) if acceptance[at] > acceptance[at - 1]]
    if rising:
        raise UserError(
            f"found {given}, which rises at position {rising[0]}",
            "give marginal acceptance: the share of drafts accepted up to each position, which never rises",
            key="acceptance",
        )
    if len(acceptance) != k:
        raise UserError(
            f"found {len(acceptance)} shares ({given}) for k = {k}",
            "give one share for each draft position",
            key="acceptance",
        )
    if not 0 < question.draft.draft_rate <= 1:
        raise UserError(f"found {question.draft.draft_rate:g}", "give a share above 0, at most 1", key="draft-rate")
    if not len(concurrency) or min(concurrency) < 1:
        given_rows = ", ".join(f"{at:g}" for at in concurrency) or "none"
        raise UserError(f"found {given_rows}", "give requests in flight, each at least 1", key="concurrency")


def doublings(calibration: Fit, question: Question, rows: Floats) -> Floats:
    """Return how far a question lies outside the fitted places, in doublings of rows and of context.

    A context within a factor of two counts as inside, as it does for the warning. Positions beyond the fitted ones do
    not count: fits are made on baselines too, so that most speed-ups which the model was held against lay there, and
    their errors hold it.
    """
    most_rows = max(place.rows for place in calibration.places)
    context = [place.context for place in calibration.places]
    read = max(question.traffic.context / (2 * max(context)), min(context) / 2 / question.traffic.context)
    return np.log2(np.maximum(rows / most_rows, 1.0)) + math.log2(max(read, 1.0))


def normals(n: int) -> Floats:
    """Return n values that lie as a standard normal's quantiles do, in an order of chance, the same each time."""
    order = np.random.default_rng(0).permutation(n)
    return np.asarray(ndtri((order + 0.5) / n), dtype=np.float64)


def outside(calibration: Fit, question: Question, rows: Floats) -> list[str]:
    """Return in words what lies outside the places that the parameters were fitted on."""
    most_rows = max(place.rows for place in calibration.places)
    most_tokens = max(place.tokens for place in calibration.places)
    context = [place.context for place in calibration.places]
    tokens = float(rows.max()) * (1 + question.draft.k * question.draft.draft_rate)
    warnings = []
    if rows.max() > most_rows * 1.01:
        warnings.append(f"{rows.max():.0f} rows: fitted on at most {most_rows:.0f}")
    if tokens > most_tokens * 1.01:
        warnings.append(f"{tokens:.0f} positions in a step: fitted on at most {most_tokens:.0f}")
    if not min(context) / 2 <= question.traffic.context <= max(context) * 2:
        warnings.append(
            f"a context of {question.traffic.context:.0f} tokens: fitted on {min(context):.0f} to {max(context):.0f}"
        )
    return warnings


def _widened(widening: Widening, sigma: float) -> list[str]:
    """Return in words how much wider the interval is, where it is."""
    if sigma <= 0:
        return []
    far = (sigma / widening.discrepancy) ** 2
    return [
        f"{far:.1f} doublings from what was fitted: the interval is wider by {sigma:.0%} (one standard deviation), "
        f"{widening.discrepancy:.1%} for each, which is how far the model is off from one source to the next"
    ]


def _crossover(parameters: Parameters, drawn: Sequence[Parameters], question: Question, off: Floats) -> Crossover:
    value = crossing(parameters, question)
    crossings = [crossing(each, question, own) for each, own in zip(drawn, off, strict=True)]
    low, high = np.quantile(crossings, INTERVAL, method="nearest")
    status = "always below" if value == 0 else "ok" if np.isfinite(value) else "always above"
    return Crossover(_finite(value), _finite(low), _finite(high), status)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) and value > 0 else None
