"""Every figure that Lab 9 published beside the replica's, labelled by what the comparison is worth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from speclab.predict.parameters import Parameters
from speclab.predict.prediction import INTERVAL
from speclab.replications.lab09.against import DERIVED
from speclab.replications.lab09.replica import DRAFT, EAGLE, NGRAM, FittedReplica

COLUMNS = [
    "id",
    "quantity",
    "arm",
    "workload",
    "concurrency",
    "unit",
    "published",
    "model",
    "low",
    "high",
    "difference",
    "role",
]
DRAWS = 100

USED, GIVEN, FOLLOWS = "used to fit", "taken as given", "follows from what was given"
ARITHMETIC, ASSUMED, PREDICTED, NOT_MODELLED = "arithmetic", "assumed", "predicted", "not modelled"

ROLES = {
    **dict.fromkeys(("b01", "b04", "b12"), USED),
    **dict.fromkeys(("b05", "b06", "b10", "b11", "a02", "a03", "a04", "d01", "d02", "d04", "n06", "n09"), GIVEN),
    **dict.fromkeys(("w01", "w02", "w03"), GIVEN),
    **dict.fromkeys(("b03", "d05", "d06", "d07"), FOLLOWS),
    **dict.fromkeys(("b02", "c03", "c04", "d03"), ARITHMETIC),
    **dict.fromkeys(("a01", "n01", "n02", "n03"), ASSUMED),
    **dict.fromkeys(("n10", "n11", "n12", "n13"), NOT_MODELLED),
}
"""What the replica's figure is worth, by id; predicted by default.

*Used to fit*: the fit saw it. *Taken as given*: an input of the model (rows of a step at three concurrencies,
acceptance, what a draft position adds at batch 1, prompt lengths). *Follows from what was given*: arithmetic on such
figures. *Arithmetic*: two constants of data sheets. *Assumed*: the model takes it to be so. *Not modelled*: it has no
such figure.
"""

Figures = Callable[[FittedReplica, Parameters], float]


def replica_table(replica: FittedReplica, published: pd.DataFrame, draws: int = DRAWS) -> pd.DataFrame:
    """Return every published figure with the replica's.

    Parameters
    ----------
    replica : FittedReplica
    published : pd.DataFrame
        As `speclab.replications.published.read` gives it.
    draws : int
        Parameter sets behind the interval.

    Returns
    -------
    pd.DataFrame
        `COLUMNS`; ``difference`` is model over published, less 1; ``low`` and ``high`` hold nine of ten draws of the
        parameters, and are given for what is predicted only.
    """
    best = replica.calibration.parameters
    drawn = replica.calibration.draws(draws)
    rows = []
    for row in published.to_dict("records"):
        name = str(row["id"])
        role = ROLES.get(name, PREDICTED)
        figure = FIGURES.get(name)
        model = figure(replica, best) if figure else float("nan")
        low = high = float("nan")
        if figure and role == PREDICTED:
            low, high = _interval([figure(replica, parameters) for parameters in drawn])
        value = float(row["value"])
        difference = model / value - 1 if role != ASSUMED or model else float("nan")
        place = {key: row[key] for key in ("id", "quantity", "arm", "workload", "concurrency", "unit")}
        rows.append({**place, "published": value, "model": model, "low": low, "high": high, "difference": difference,
                     "role": role})  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS)


def _interval(values: list[float]) -> tuple[float, float]:
    """Return the range of nine of ten values; a crossing that is not reached lies above all."""
    known = np.where(np.isnan(values), np.inf, values)
    low, high = np.quantile(known, INTERVAL, method="nearest")
    return float(low), float(high) if np.isfinite(high) else float("nan")


def _added_ms(replica: FittedReplica, arm: str, using: Parameters, workload: str = "chat") -> float:
    return 1e3 * float(replica.step_s(1, arm, workload, using) - replica.step_s(1, None, workload, using))


def _crossing(replica: FittedReplica, arm: str, using: Parameters) -> float:
    value = replica.crossing(arm, using).value
    return float("nan") if value is None else value


def _ratio_of_speeds(replica: FittedReplica, arm: str, other: str, workload: str, using: Parameters) -> float:
    return float(replica.speed_up(1, arm, workload, using) / replica.speed_up(1, other, workload, using))


def _spread_of_extra(replica: FittedReplica, using: Parameters) -> float:
    extra = [_added_ms(replica, NGRAM, using, workload) for workload in replica.traffic]
    return max(extra) / min(extra) - 1


_GIVEN = ("a02", "a03", "a04", "n06", "n09", "w01", "w02", "w03")


def _given(name: str) -> Figures:
    return lambda replica, _: float(replica.published[name])


def _arithmetic(name: str) -> Figures:
    return lambda _, __: DERIVED[name](_nothing)


def _nothing(*_: object, **__: object) -> float:
    """Return no finding: arithmetic on data sheets needs none."""
    return float("nan")


def _rows(concurrency: int) -> Figures:
    return lambda replica, _: float(replica.rows(concurrency))


FIGURES: dict[str, Figures] = {
    **{name: _given(name) for name in _GIVEN},
    **{name: _arithmetic(name) for name in ("b02", "c03", "c04", "d03")},
    **dict(zip(("b06", "b07", "b08", "b09", "b10", "b11"), map(_rows, (1, 4, 16, 64, 128, 256)), strict=True)),
    "b01": lambda replica, using: 1e3 * float(replica.step_s(1, using=using)),
    "b03": lambda replica, using: 1e-3 * DERIVED["b02"](_nothing) / float(replica.step_s(1, using=using)),
    "b04": lambda replica, using: float(replica.throughput(256, using=using) / replica.throughput(128, using=using)),
    "b05": _rows(256),
    "b12": lambda replica, using: 1 / float(replica.step_s(256, using=using)),
    "c01": lambda replica, using: _crossing(replica, DRAFT, using),
    "c02": lambda replica, using: _crossing(replica, EAGLE, using),
    "a01": lambda replica, _: 0.0,
    "d01": lambda replica, using: _added_ms(replica, DRAFT, using),
    "d02": lambda replica, using: _added_ms(replica, DRAFT, using) / 3,
    "d04": lambda replica, using: _added_ms(replica, EAGLE, using) / 3,
    "d05": lambda replica, using: _added_ms(replica, DRAFT, using) / _added_ms(replica, EAGLE, using),
    "d06": lambda replica, using: 1 - _added_ms(replica, EAGLE, using) / _added_ms(replica, DRAFT, using),
    "d07": lambda replica, using: _ratio_of_speeds(replica, EAGLE, DRAFT, "chat", using),
    **dict.fromkeys(("n01", "n02", "n03"), lambda replica, _: 8.0),
    "n04": lambda replica, using: 1e3 * float(replica.step_s(1, NGRAM, using=using)),
    "n05": lambda replica, using: float(replica.step_s(1, NGRAM, using=using) / replica.step_s(1, using=using)),
    "n07": lambda replica, using: 1 - float(replica.speed_up(1, NGRAM, using=using)),
    "n08": _spread_of_extra,
    "r01": lambda replica, using: _ratio_of_speeds(replica, EAGLE, NGRAM, "revision", using),
    "t01": lambda replica, using: float(replica.throughput(128, EAGLE, using)),
    "t02": lambda replica, using: replica.tokens_per_step(EAGLE) / float(replica.step_s(128, EAGLE, using=using)),
}
"""The replica's figure by id."""
