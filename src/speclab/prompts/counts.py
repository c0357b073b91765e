"""Prompt tokens of each target, as counted once by `speclab.prompts.tokens` and stored beside this module."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd

from speclab.errors import UserError
from speclab.prompts.workloads import WORKLOADS, workload_named

COLUMNS = ("tokens", "workload", "id", "count")
STORED = Path(__file__).parent / "token_counts.csv"


def read_rows() -> list[dict[str, str]]:
    """Return the stored table, a dictionary a row with the keys of `COLUMNS`."""
    with STORED.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def token_counts(tokens: str, workload: str) -> dict[str, int]:
    """Return how many tokens each prompt of a workload has, the target's chat template included.

    Parameters
    ----------
    tokens : str
        Name of the target's counts, as in a lab's ``target.tokens``: ``llama-3.1`` or ``smollm2``.
    workload : str
        ``chat``, ``completion`` or ``revision``.

    Returns
    -------
    dict[str, int]
        Tokens by prompt id, measured and warm-up prompts.

    Raises
    ------
    UserError
        Nothing is stored under that name, or there is no such workload.
    """
    workload_named(workload)
    rows = read_rows()
    stored = dict.fromkeys(row["tokens"] for row in rows)
    if tokens not in stored:
        raise UserError(f"no token counts for {tokens!r}", f"counts are stored for {', '.join(stored)}",
                        key="target.tokens")  # fmt: skip
    return {row["id"]: int(row["count"]) for row in rows if (row["tokens"], row["workload"]) == (tokens, workload)}


def summary(tokens: str) -> pd.DataFrame:
    """Return the length of the measured prompts, one row a workload, beside the published length.

    One rule holds for all three: the text is a user message and goes through the target's own chat template, which
    alone is 35 tokens of ``llama-3.1``. Our chat questions were written to be about 18 tokens long, so chat's mean is
    near the published one by design. The other two are what the rule gives over all 164 functions, not tuned: the
    report does not say which functions it took, whether it used the template, or how it worded its instruction.

    Parameters
    ----------
    tokens : str
        Name of the target's counts.

    Returns
    -------
    pd.DataFrame
        Columns ``workload``, ``prompts``, ``mean_tokens``, ``min_tokens``, ``max_tokens``, ``published_mean_tokens``.

    Raises
    ------
    UserError
        Nothing is stored under that name.
    """
    rows = []
    for name, workload in WORKLOADS.items():
        counts = token_counts(tokens, name)
        measured = [counts[prompt.id] for prompt in workload.measured()]
        rows.append(
            {
                "workload": name,
                "prompts": len(measured),
                "mean_tokens": sum(measured) / len(measured),
                "min_tokens": min(measured),
                "max_tokens": max(measured),
                "published_mean_tokens": workload.published_mean_tokens,
            }
        )
    return pd.DataFrame(rows)
