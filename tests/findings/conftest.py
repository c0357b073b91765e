from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from speclab.metrics.summary import METRICS

SOURCE = "simulated (h100-sxm)"


@pytest.fixture
def cell_row() -> Callable[..., dict[str, Any]]:
    """One row as `speclab.metrics.summary.of` makes it; what is not given is null."""

    def build(arm: str, concurrency: int, *, workload: str = "chat", repeat: int = 0, **given: Any) -> dict[str, Any]:
        row: dict[str, Any] = {
            "arm": arm,
            "workload": workload,
            "concurrency": concurrency,
            "repeat": repeat,
            "source": SOURCE,
            "status": "ok",
            "failure": None,
            "failed_checks": None,
        }
        return row | dict.fromkeys(METRICS) | given

    return build


@pytest.fixture
def position_rows() -> Callable[..., pd.DataFrame]:
    """Rows as `speclab.metrics.summary.positions` makes them, from counts."""

    def build(arm: str, concurrency: int, drafts: float, accepted: list[float], *, repeat: int = 0) -> pd.DataFrame:
        return pd.DataFrame(
            {
                "arm": arm,
                "workload": "chat",
                "concurrency": concurrency,
                "repeat": repeat,
                "source": SOURCE,
                "position": range(len(accepted)),
                "drafts": drafts,
                "accepted": accepted,
            }
        )

    return build
