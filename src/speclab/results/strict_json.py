"""JSON that every parser takes: no NaN, no infinity."""

from __future__ import annotations

import json
import math
from typing import Any

import pandas as pd


def rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a table's rows as flat objects; None where there is no finite value."""
    return [{str(name): _plain(value) for name, value in row.items()} for row in table.to_dict("records")]


def dumps(content: object) -> str:
    """Return content as JSON, a value a line.

    Raises
    ------
    ValueError
        A number in it is not finite.
    """
    return json.dumps(content, indent=1, allow_nan=False)


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value
