"""Many questions at once: a row for each device, acceptance, context and k, as the map's printed table has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import pandas as pd

from speclab.errors import UserError
from speclab.predict.answer import answer
from speclab.predict.calibration import Calibration
from speclab.predict.query import Query


def survey(
    base: Query,
    calibration: Calibration,
    devices: Sequence[str],
    curves: Mapping[str, Sequence[float]],
    contexts: Sequence[float],
    ks: Sequence[int],
    discrepancy: float = 0.0,
) -> pd.DataFrame:
    """Return what the model says over devices, acceptance curves, contexts and draft positions.

    Parameters
    ----------
    base : Query
        All that the questions share.
    calibration : Calibration
        The parameters that answer them.
    devices : sequence of str
    curves : mapping of str to sequence of float
        Marginal acceptance by position, cut at each k; name to curve.
    contexts : sequence of float
        Mean context of a row, tokens.
    ks : sequence of int
        Draft positions.
    discrepancy : float
        As for `speclab.predict.answer.answer`.

    Returns
    -------
    DataFrame
        One row for each concurrency of each question: ``device, acceptance, context, k, concurrency, speed_up, low,
        high, break_even_length, best_k, status, crossover, crossover_low, crossover_high, most_in_flight``. The last:
        requests that fit into memory, none where it is not known. A question that does not fit at all has no row.
    """
    tables = []
    for device, (name, curve), context, k in product(devices, curves.items(), contexts, ks):
        query = replace(base, device=device, acceptance=tuple(curve[:k]), context=context, k=k)
        rows = _rows(query, calibration, discrepancy)
        tables.append(rows.assign(device=device, acceptance=name, context=context, k=k))
    keys = ["device", "acceptance", "context", "k"]
    table = pd.concat(tables, ignore_index=True)
    return table[[*keys, *(column for column in table.columns if column not in keys)]]


def _rows(query: Query, calibration: Calibration, discrepancy: float) -> pd.DataFrame:
    try:
        answered = answer(query, calibration, discrepancy=discrepancy)
    except UserError as error:
        if error.key != "--context":
            raise
        return pd.DataFrame()
    prediction = answered.prediction
    crossover = prediction.crossover
    return pd.DataFrame(
        {
            "concurrency": prediction.concurrency,
            "speed_up": prediction.speed_up,
            "low": prediction.low,
            "high": prediction.high,
            "break_even_length": prediction.break_even_length,
            "best_k": prediction.best_k,
            "status": crossover.status,
            "crossover": crossover.value,
            "crossover_low": crossover.low,
            "crossover_high": crossover.high,
            "most_in_flight": answered.most_in_flight,
        }
    )
