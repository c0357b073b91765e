"""How many steps each text took: the unit in which cells with different requests can be held against each other."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from speclab.metrics.window import CellWindow

COLUMNS = ("prompt_id", "answers", "steps", "tokens")


def answers_by_prompt(cut: CellWindow) -> pd.DataFrame:
    """Return the decode steps and tokens of each prompt's whole answers, `COLUMNS`.

    Every measured answer that ended without error counts, inside the window or not: how many steps a text takes does
    not depend on when it was written, and a cell at one request in flight has few answers. The first token of an
    answer comes from its prefill and is in neither sum; answers without a decode step are left out.
    """
    table, decode = cut.requests, cut.all_events.decode
    steps = np.bincount(decode.row, minlength=len(table))
    tokens = np.bincount(decode.row, weights=decode.tokens, minlength=len(table)).astype(np.int64)
    kept = whole_answers(cut) & (steps > 0)
    rows = table.assign(steps=steps, tokens=tokens).loc[kept, ["prompt_id", "steps", "tokens"]]
    grouped = rows.groupby("prompt_id", as_index=False)
    return grouped.agg(answers=("steps", "size"), steps=("steps", "sum"), tokens=("tokens", "sum"))[list(COLUMNS)]


def whole_answers(cut: CellWindow) -> NDArray[np.bool_]:
    """Return which requests are measured answers that ended without error, shape (requests,)."""
    table = cut.requests
    whole = ~table["warm_up"] & table["error"].isna() & table["output_tokens"].notna()
    return whole.to_numpy(dtype=np.bool_)
