"""Whether two arms wrote the same text, and where they part.

Every method of speculation claims to leave greedy text as it is. In exact arithmetic it does; in floating point, logits
depend on how many rows and positions a step has, and where the two best tokens are nearly equal the choice may fall
the other way. The gap between them at the first difference tells such a near-tie from a fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from speclab.metrics.acceptance import wilson

COMPARED = ("prompt_id", "equal", "first_character", "first_token", "gap")


def first_difference(one: Sequence[Any], other: Sequence[Any]) -> int | None:
    """Return the first index at which two texts (or lists of tokens) differ; None where they are equal.

    Where one is the other's beginning, they differ at its end.
    """
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return None if len(one) == len(other) else min(len(one), len(other))


def compare(baseline: pd.DataFrame, arm: pd.DataFrame) -> pd.DataFrame:
    """Return, for each prompt that both have answered, whether the answers are equal and where they part.

    Parameters
    ----------
    baseline, arm : pd.DataFrame
        Answers of two arms, with ``prompt_id``, ``text``, ``finish_reason`` and ``error`` as in
        `speclab.record.schema.REQUEST_COLUMNS`. Two more columns are used where they are there: ``token_ids``, and in
        the baseline ``gaps``, the difference between its two highest logits at each token. Of several answers to one
        prompt the first counts; one that did not end does not.

    Returns
    -------
    pd.DataFrame
        ``prompt_id``; ``equal``; ``first_character`` and ``first_token``, the indices of the first difference (null
        where equal or unknown); ``gap``, the baseline's logit gap at that token (nats). In the baseline's order.
    """
    ours, theirs = _ended(baseline), _ended(arm)
    rows = []
    for prompt, left in ours.items():
        if prompt not in theirs:
            continue
        right = theirs[prompt]
        character = first_difference(left["text"], right["text"])
        token = gap = None
        if _has(left, "token_ids") and _has(right, "token_ids"):
            token = first_difference(left["token_ids"], right["token_ids"])
        if token is not None and _has(left, "gaps") and token < len(left["gaps"]):
            gap = left["gaps"][token]
        rows.append((prompt, character is None and token is None, character, token, gap))
    compared = pd.DataFrame(rows, columns=list(COMPARED))
    for name in ("first_character", "first_token"):
        compared[name] = compared[name].astype("Int64")
    return compared.assign(equal=compared["equal"].astype(bool), gap=compared["gap"].astype(float))


def summarise(compared: pd.DataFrame) -> dict[str, float | int | None]:
    """Return what a comparison comes to.

    Returns
    -------
    dict
        ``prompts`` and ``equal``, counts; ``share`` of equal answers with its 95% Wilson interval ``low``, ``high``;
        ``first_token``, the median token at which the others part; ``gap`` and ``largest_gap``, median and maximum of
        the logit gaps there (nats). None for what there is none of.
    """
    n, equal = len(compared), int(compared["equal"].sum())
    share: tuple[float | None, ...] = (None, None, None)
    if n:
        share = tuple(float(part[0]) for part in wilson(np.array([float(equal)]), np.array([float(n)])))
    gaps, tokens = compared["gap"].dropna(), compared["first_token"].dropna()
    return {
        "prompts": n,
        "equal": equal,
        "share": share[0],
        "low": share[1],
        "high": share[2],
        "first_token": float(tokens.median()) if len(tokens) else None,
        "gap": float(gaps.median()) if len(gaps) else None,
        "largest_gap": float(gaps.max()) if len(gaps) else None,
    }


def _ended(answers: pd.DataFrame) -> dict[str, dict[str, Any]]:
    whole = answers[answers["error"].isna() & answers["finish_reason"].notna() & answers["text"].notna()]
    first = whole.drop_duplicates("prompt_id")
    return {str(row["prompt_id"]): {str(name): row[name] for name in row} for row in first.to_dict("records")}


def _has(row: dict[str, Any], name: str) -> bool:
    return isinstance(row.get(name), Sequence | np.ndarray)
