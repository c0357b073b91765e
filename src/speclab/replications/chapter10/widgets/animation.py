"""What the animation replays: the passes of the event simulator, as data for a script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd


def recording(variants: pd.DataFrame, first: str) -> dict[str, Any]:
    """Return the passes of some variants of one scenario, for the widget ``animation``.

    Parameters
    ----------
    variants : pd.DataFrame
        ``chapter10.animation()``: one row a variant, its passes nested. All serve the same requests.
    first : str
        The variant that is shown first, on its most telling pass.

    Returns
    -------
    dict
        ``requests``, ``variants`` (each with its passes and totals; times in ms) and ``first``.

    Raises
    ------
    LookupError
        There is no such variant.
    """
    rows = variants.to_dict("records")
    shown = [row for row in rows if row["variant"] == first]
    if len(shown) != 1:
        raise LookupError(f"{len(shown)} variants {first!r} among {', '.join(row['variant'] for row in rows)}")
    requests = [
        {"name": f"Request {position}", "prompt": request["prompt"], "output": request["output"]}
        for position, request in enumerate(rows[0]["requests"], start=1)
    ]
    return {
        "requests": requests,
        "variants": [
            {
                "key": row["variant"],
                "label": label(row["k"], row["alpha"]),
                "gamma": 0 if pd.isna(row["k"]) else int(row["k"]),
                "expected": float(row["closed_form_tokens_per_pass"]),
                "tokens_per_pass": float(row["tokens_per_pass"]),
                "tpot_p99_ms": float(row["tpot_p99_ms"]),
                "done_ms": 1000 * float(row["horizon_s"]),
                "passes": _passes(row["passes"], len(requests)),
            }
            for row in rows
        ],
        "first": {"variant": first, "step": telling(shown[0]["passes"])},
    }


def label(k: float | None, alpha: float | None) -> str:
    """Return a variant's label for the reader; k is 0 or null where nothing is drafted."""
    return "off" if pd.isna(k) or not k else f"{k:.0f} drafts a pass, α = {alpha:g}"


def telling(passes: Sequence[Mapping[str, Any]]) -> int:
    """Return the pass that shows most: one row keeps all its drafts and another loses one.

    Where there is none, it is the first that loses a draft, else the first that decodes.
    """
    decoding = [number for number, pass_ in enumerate(passes) if pass_["kind"] == "decode"]
    losing = [number for number in decoding if _lost(passes[number])]
    both = [number for number in losing if not all(_loses(row) for row in passes[number]["rows"])]
    return (both or losing or decoding)[0]


def _lost(pass_: Mapping[str, Any]) -> bool:
    return any(_loses(row) for row in pass_["rows"])


def _loses(row: Mapping[str, Any]) -> bool:
    return bool(row["accepted"] < row["drafted"])


def _passes(passes: Sequence[Mapping[str, Any]], requests: int) -> list[dict[str, Any]]:
    out = [0] * requests
    shown = []
    for pass_ in passes:
        for row in pass_["rows"]:
            out[row["request"]] = row["emitted"]
        shown.append(
            {
                "kind": pass_["kind"],
                "start_ms": 1000 * pass_["start_s"],
                "duration_ms": 1000 * pass_["duration_s"],
                "draft_ms": 1000 * pass_["draft_part_s"],
                "rows": [
                    {key: row[key] for key in ("request", "drafted", "accepted", "kept")} for row in pass_["rows"]
                ],
                "out": list(out),
            }
        )
    return shown
