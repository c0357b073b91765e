"""One recorded cell in memory."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from speclab.record.schema import CellRecord


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell as metrics see it.

    Attributes
    ----------
    record : CellRecord
        What was asked, and what happened.
    requests : pd.DataFrame
        A row for each request, columns as in `speclab.record.schema.REQUEST_COLUMNS`; the two event columns hold one
        NumPy array for each row (int32 microseconds after ``start_s``, int16 tokens).
    """

    record: CellRecord
    requests: pd.DataFrame
