"""Many questions at once: a row for each device, acceptance, context and k, as the map's printed table has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import pandas as pd

from speclab.asking.answer import answer
from speclab.asking.asked import Asked
from speclab.errors import UserError


def survey(
    base: Asked,
    devices: Sequence[str],
    curves: Mapping[str, Sequence[float]],
    contexts: Sequence[float],
    ks: Sequence[int],
) -> pd.DataFrame:
    """Return what the model says over devices, acceptance curves, contexts and draft positions.

    Parameters
    ----------
    base : Asked
        All that the questions share.
    devices : sequence of str
    curves : mapping of str to sequence of float
        Marginal acceptance by position, cut at each k; name to curve.
    contexts : sequence of float
        Mean context of a row, tokens.
    ks : sequence of int
        Draft positions.

    Returns
    -------
    DataFrame
        One row for each concurrency of each question: ``device, acceptance, context, k, concurrency, speed_up, low,
        high, break_even_length, best_k, status, crossover, crossover_low, crossover_high, most_in_flight``. The last:
        requests that fit into memory, none where it is not known. A question that does not fit at all has no row.
    """
    tables = []
    for device, (name, curve), context, k in product(devices, curves.items(), contexts, ks):
        asked = replace(base, device=device, acceptance=tuple(curve[:k]), context=context, k=k)
        tables.append(_rows(asked).assign(device=device, acceptance=name, context=context, k=k))
    keys = ["device", "acceptance", "context", "k"]
    table = pd.concat(tables, ignore_index=True)
    return table[[*keys, *(column for column in table.columns if column not in keys)]]


def _rows(asked: Asked) -> pd.DataFrame:
    try:
        answered = answer(asked, with_errors=False)
    except UserError as error:
        if error.key != "--context":
            raise
        return pd.DataFrame()
    found = answered.prediction
    crossover = found.crossover
    return pd.DataFrame(
        {
            "concurrency": found.concurrency,
            "speed_up": found.speed_up,
            "low": found.low,
            "high": found.high,
            "break_even_length": found.break_even_length,
            "best_k": found.best_k,
            "status": crossover.status,
            "crossover": crossover.value,
            "crossover_low": crossover.low,
            "crossover_high": crossover.high,
            "most_in_flight": answered.most_in_flight,
        }
    )
