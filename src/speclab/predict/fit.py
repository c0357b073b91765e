"""Parameters from measured figures by least squares: how uncertain they are, and when the figures do not carry them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from speclab.errors import UserError
from speclab.predict.parameters import MEANINGS, Parameters

Floats = NDArray[np.float64]

MOST_CONDITION = 100.0
"""Condition number of the scaled Jacobian above which the figures do not tell the parameters apart: one of their
combinations is then known a hundred times worse than another."""

FURTHEST = math.log(1e3)
"""How far from its start a parameter may be sought, up or down, in its logarithm."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a figure was measured; the fitted range is made of these.

    Attributes
    ----------
    rows : float
        Rows of a step.
    tokens : float
        Positions that a step's pass runs over.
    context : float
        Tokens that a row has cached.
    """

    rows: float
    tokens: float
    context: float


@dataclass(frozen=True, slots=True)
class Measured:
    """One measured figure and how the model predicts it.

    Attributes
    ----------
    label : str
        What and where, for messages and tables.
    value : float
        As measured, above 0.
    model : callable
        The same figure from parameters.
    place : Place
        Where it was measured.
    spread : float
        Relative standard deviation of the measurement.
    """

    label: str
    value: float
    model: Callable[[Parameters], float]
    place: Place
    spread: float = 0.01


@dataclass(frozen=True, slots=True)
class Fit:
    """Fitted parameters and their uncertainty.

    Attributes
    ----------
    parameters : Parameters
        The best ones.
    free, held : tuple of str
        Which were fitted, and which were taken as given and count as uncertain by their plausible range.
    covariance : ndarray, shape (free + held, free + held)
        Of the logarithms, in that order. A held one's uncertainty moves the fitted ones with it.
    residuals : dict of str to float
        Model over measured, less 1, by label.
    condition : float
        Condition number of the scaled Jacobian.
    places : tuple of Place
        Where the figures were measured.
    fitted_on : str
        In words.
    """

    parameters: Parameters
    free: tuple[str, ...]
    held: tuple[str, ...]
    covariance: Floats
    residuals: dict[str, float]
    condition: float
    places: tuple[Place, ...]
    fitted_on: str

    def relative_error(self, name: str) -> float:
        """Return a parameter's standard deviation over its value, held or fitted; 0 for one that counts as exact."""
        names = self.free + self.held
        return float(np.sqrt(self.covariance[names.index(name), names.index(name)])) if name in names else 0.0

    def draws(self, n: int, seed: int = 0) -> list[Parameters]:
        """Return n parameter sets as uncertain as these are, the same for the same seed."""
        names = self.free + self.held
        if not names or not n:
            return []
        logs = np.random.default_rng(seed).multivariate_normal(np.zeros(len(names)), self.covariance, n, method="eigh")
        return [self.parameters.replaced(**_clipped(self.parameters, names, row)) for row in logs]


def fit(
    measured: Sequence[Measured], start: Parameters, free: Sequence[str], fitted_on: str, exact: Sequence[str] = ()
) -> Fit:
    """Return the parameters that come closest to some measured figures, in their logarithms.

    Parameters
    ----------
    measured : sequence of Measured
        The figures.
    start : Parameters
        Where to begin, and the values of what is held.
    free : sequence of str
        Names of what is fitted.
    fitted_on : str
        What the figures are, for the record.
    exact : sequence of str
        Held parameters that the predictions do not depend on: they carry no uncertainty.

    Raises
    ------
    UserError
        A name is unknown, a figure is not above 0, or the figures do not carry the parameters: fewer of them, or two
        parameters that they cannot tell apart.
    """
    names = tuple(free)
    _check(measured, start, names)
    values = np.log([getattr(start, name) for name in names])
    spreads = np.array([figure.spread for figure in measured])

    def parameters(logs: Floats, others: Sequence[str] = names) -> Parameters:
        return start.replaced(**_clipped(start, others, logs - np.log([getattr(start, name) for name in others])))

    def residuals(logs: Floats) -> Floats:
        at = parameters(logs)
        return np.asarray(np.log([figure.model(at) / figure.value for figure in measured]) / spreads)

    from scipy.optimize import least_squares  # takes a third of a second, and few commands fit anything

    solution = least_squares(residuals, values, bounds=(values - FURTHEST, values + FURTHEST), x_scale=0.1)
    best = parameters(solution.x)
    _check_inside(solution.x - values, names, len(measured))
    condition = _check_carried(solution.jac, names, len(measured))
    held = tuple(name for name in MEANINGS if name not in names and name not in exact and getattr(best, name) > 0)
    covariance = _covariance(measured, best, names, held, spreads, solution.fun, solution.jac)
    off = {figure.label: figure.model(best) / figure.value - 1 for figure in measured}
    return Fit(best, names, held, covariance, off, condition, tuple(figure.place for figure in measured), fitted_on)


def _check(measured: Sequence[Measured], start: Parameters, free: tuple[str, ...]) -> None:
    unknown = [name for name in free if name not in MEANINGS]
    if unknown:
        raise UserError(f"unknown parameter {unknown[0]!r}", f"there are {', '.join(MEANINGS)}", key="free")
    bad = [figure.label for figure in measured if not figure.value > 0 or not math.isfinite(figure.value)]
    if bad:
        raise UserError(f"{bad[0]} has no value above 0", "leave it out or measure it again")
    at_zero = [name for name in free if getattr(start, name) <= 0]
    if at_zero:
        raise UserError(f"{at_zero[0]} begins at 0", "begin a fitted parameter above 0", key="free")
    if len(free) > len(measured):
        raise UserError(
            f"{len(measured)} measured figures cannot carry {len(free)} parameters ({', '.join(free)})",
            f"hold {len(free) - len(measured)} of them at a plausible value, or measure more",
        )


def _check_inside(moved: Floats, free: tuple[str, ...], n: int) -> None:
    away = np.abs(moved) > FURTHEST - 0.01
    if away.any():
        name = free[int(np.argmax(away))]
        raise UserError(
            f"{name} runs away to a thousandth or a thousandfold: the {n} measured figures do not carry it",
            "hold it at a plausible value",
        )


def _check_carried(jacobian: Floats, free: tuple[str, ...], n: int) -> float:
    """Return the condition number of the Jacobian, its columns scaled to length 1."""
    lengths = np.linalg.norm(jacobian, axis=0)
    if (lengths < 1e-9).any():
        mute = free[int(np.argmin(lengths))]
        raise UserError(f"none of the {n} measured figures depends on {mute}", "hold it at a plausible value")
    _, singular, directions = np.linalg.svd(jacobian / lengths, full_matrices=False)
    condition = float(singular[0] / max(singular[-1], 1e-300))
    if condition > MOST_CONDITION:
        weakest = np.argsort(-np.abs(directions[-1]))[:2]
        pair = " and ".join(free[at] for at in sorted(weakest))
        raise UserError(
            f"the {n} measured figures cannot tell {pair} apart (condition number {condition:,.0f})",
            f"hold one of them at a plausible value, or measure where they differ; most is {MOST_CONDITION:.0f}",
        )
    return condition


def _covariance(
    measured: Sequence[Measured],
    best: Parameters,
    free: tuple[str, ...],
    held: tuple[str, ...],
    spreads: Floats,
    residuals: Floats,
    jacobian: Floats,
) -> Floats:
    """Return the covariance of fitted and held logarithms.

    The fitted ones' is that of least squares, wider where the residuals are larger than the measurements' spread. A
    held one's plausible range adds what the fitted ones would move if it were another: -(J'J)^-1 J' Jh.
    """
    spare = len(measured) - len(free)
    wider = max(1.0, float(residuals @ residuals) / spare) if spare else 1.0
    inverse = np.linalg.inv(jacobian.T @ jacobian)
    of_held = np.diag([MEANINGS[name].spread(getattr(best, name)) ** 2 for name in held])
    towards = np.array([_slope(measured, best, name, spreads) for name in held]).reshape(len(held), len(measured)).T
    moved = -inverse @ jacobian.T @ towards
    of_free = wider * inverse + moved @ of_held @ moved.T
    both = moved @ of_held
    return np.block([[of_free, both], [both.T, of_held]])


def _slope(measured: Sequence[Measured], best: Parameters, name: str, spreads: Floats) -> Floats:
    """Return how the residuals change with the logarithm of one parameter."""
    small = 1e-4
    up, down = (best.replaced(**_clipped(best, (name,), np.array([step]))) for step in (small, -small))
    return np.log([figure.model(up) / figure.model(down) for figure in measured]) / spreads / (2 * small)


def _clipped(around: Parameters, names: Sequence[str], logs: Floats) -> dict[str, float]:
    """Return some parameters moved by `logs`, and back to where a parameter has a meaning."""
    moved = {name: getattr(around, name) * math.exp(log) for name, log in zip(names, logs, strict=True)}
    if "smoothing" in moved:
        moved["smoothing"] = max(1.0, moved["smoothing"])
    if "lookup_hit" in moved:
        moved["lookup_hit"] = min(1.0, moved["lookup_hit"])
    return moved
