"""JSON that every parser takes: no NaN, no infinity."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from typing import Any

import pandas as pd


def rows(table: pd.DataFrame, whole: Collection[str] = ()) -> list[dict[str, Any]]:
    """Return a table's rows as flat objects; None where there is no finite value, integers in columns of `whole`."""
    return [
        {str(name): _plain(value, name in whole) for name, value in row.items()} for row in table.to_dict("records")
    ]


def dumps(content: object) -> str:
    """Return content as JSON, a value a line.

    Raises
    ------
    ValueError
        A number in it is not finite.
    """
    return json.dumps(content, indent=1, allow_nan=False)


def _plain(value: object, is_whole: bool) -> object:
    if not isinstance(value, float):
        return value
    return None if not math.isfinite(value) else int(value) if is_whole else value
