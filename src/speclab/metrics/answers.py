"""How many steps each text took: the unit in which cells with different requests can be held against each other."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from speclab.metrics.window import CellWindow

EARLY, LATE = 0.4, 0.8
"""Shares of an answer's decode tokens at which its early part ends, and its late part. What follows is in neither: an
answer's end cuts its last step, and steps that are cut would look like a fall."""

PARTS = ("early_steps", "early_tokens", "late_steps", "late_tokens")

COLUMNS = ("prompt_id", "prompt_tokens", "answers", "steps", "tokens", *PARTS, "opening")

OPENING = 32
"""Characters of an answer that tell whether it is the baseline's. Greedy texts of two batches part later, where two
tokens are nearly equal; those of another model part at once."""


def answers_by_prompt(cut: CellWindow) -> pd.DataFrame:
    """Return the decode steps and tokens of each prompt's whole answers, `COLUMNS`.

    Every measured answer that ended without error counts, inside the window or not: how many steps a text takes does
    not depend on when it was written, and a cell at one request in flight has few answers. The first token of an
    answer comes from its prefill and is in neither sum; answers without a decode step are left out. An early step
    begins before `EARLY` of the answer's tokens are written, a late one after that and before `LATE`; all tokens of a
    step belong to it. ``prompt_tokens`` is the prompt's length (null where the server did not say).
    """
    table, decode = cut.requests, cut.all_events.decode
    steps = np.bincount(decode.row, minlength=len(table))
    tokens = np.bincount(decode.row, weights=decode.tokens, minlength=len(table)).astype(np.int64)
    before_row = np.concatenate([[0], np.cumsum(tokens)[:-1]]) if len(table) else tokens
    written = (np.cumsum(decode.tokens) - decode.tokens - before_row[decode.row]) / np.maximum(tokens, 1)[decode.row]
    sums = {"steps": steps, "tokens": tokens}
    for part, inside in (("early", written < EARLY), ("late", (written >= EARLY) & (written < LATE))):
        row, of_step = decode.row[inside], decode.tokens[inside]
        sums[f"{part}_steps"] = np.bincount(row, minlength=len(table))
        sums[f"{part}_tokens"] = np.bincount(row, weights=of_step, minlength=len(table)).astype(np.int64)
    kept = whole_answers(cut) & (steps > 0)
    grouped = table.assign(**sums, opening=_openings(cut)).loc[kept].groupby("prompt_id", as_index=False)
    counted = grouped.agg(
        prompt_tokens=("prompt_tokens", "first"), answers=("steps", "size"), opening=("opening", "first"),
        **{name: (name, "sum") for name in sums},
    )  # fmt: skip
    return counted[list(COLUMNS)]


def _openings(cut: CellWindow) -> pd.Series[str]:
    asked, texts = cut.record.asked, cut.requests.get("text")
    is_forced = asked.speculation is not None and asked.speculation.rejection_sample_method is not None
    if texts is None or is_forced or asked.sampling.temperature > 0:
        return pd.Series(None, index=cut.requests.index, dtype="str")
    return texts.map(_digest, na_action="ignore").astype("str")


def _digest(text: str) -> str:
    return hashlib.sha256(text[:OPENING].encode()).hexdigest()[:8]


def whole_answers(cut: CellWindow) -> NDArray[np.bool_]:
    """Return which requests are measured answers that ended without error, shape (requests,)."""
    table = cut.requests
    whole = ~table["warm_up"] & table["error"].isna() & table["output_tokens"].notna()
    return whole.to_numpy(dtype=np.bool_)
