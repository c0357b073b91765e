from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from speclab.engines.base import EngineIdentity, Reading
from speclab.lab import EngineName, Phases, Sampling, Speculation
from speclab.record.cell import Cell
from speclab.record.schema import CellRecord, CellSpec, ClientLag, Failure, Provenance

MakeRequest = Callable[..., dict[str, Any]]
MakeCell = Callable[..., Cell]


@pytest.fixture
def request_row() -> MakeRequest:
    """One request: its events as (seconds after the load's start, tokens)."""

    def build(
        start_s: float, events: Sequence[tuple[float, int]], *, ended: bool = True, **given: Any
    ) -> dict[str, Any]:
        row: dict[str, Any] = {
            "prompt_id": "chat/00",
            "warm_up": False,
            "prompt_tokens": 50,
            "output_tokens": sum(tokens for _, tokens in events) if ended else None,
            "start_s": start_s,
            "end_s": events[-1][0] if ended and events else None,
            "event_us": np.rint([(at - start_s) * 1e6 for at, _ in events]).astype(np.int32),
            "event_tokens": np.array([tokens for _, tokens in events], dtype=np.int16),
            "finish_reason": "stop" if ended else None,
            "error": None,
            "text": None,
        }
        return row | given

    return build


@pytest.fixture
def make_cell() -> MakeCell:
    """A cell of hand-made requests."""

    def build(
        rows: Sequence[dict[str, Any]],
        *,
        window_s: tuple[float, float] = (0.0, 10.0),
        readings: Sequence[Reading] = (),
        concurrency: int = 1,
        k: int = 0,
        failure: Failure | None = None,
        client_lag: ClientLag | None = None,
        client_clean_rate_per_s: float | None = None,
        server: dict[str, Any] | None = None,
        engine: EngineName = "simulated",
    ) -> Cell:
        speculation = None
        if k:
            speculation = Speculation(
                method="ngram", num_speculative_tokens=k, prompt_lookup_min=2, prompt_lookup_max=4
            )
        asked = CellSpec(
            lab="lab09", arm=f"ngram-k{k}" if k else "baseline", workload="chat", concurrency=concurrency, repeat=0,
            engine=engine, device="h100-sxm", target="a model", phases=Phases(), sampling=Sampling(),
            speculation=speculation, server=server or {}, environment={}, prompts_sha256="0", code_version="1",
        )  # fmt: skip
        record = CellRecord(
            asked=asked,
            asked_sha256=asked.sha256,
            status="failed" if failure else "ok",
            failure=failure,
            window_s=window_s,
            readings=tuple(readings),
            client_lag=client_lag,
            client_clean_rate_per_s=client_clean_rate_per_s,
            provenance=Provenance(
                identity=EngineIdentity(engine=engine, version="1", device="h100-sxm"),
                started_at="2026-11-01T00:00:00Z", ended_at="2026-11-01T00:01:00Z", git_revision=None,
                python="3.12", platform="linux", cpu="a cpu", packages={},
            ),
        )  # fmt: skip
        table = pd.DataFrame(list(rows), columns=list(rows[0]) if rows else None)
        if not rows:
            table = pd.DataFrame(
                columns=[
                    "prompt_id",
                    "event_us",
                    "event_tokens",
                    "start_s",
                    "end_s",
                    "output_tokens",
                    "error",
                    "warm_up",
                    "prompt_tokens",
                ]
            )
            table = table.astype({"start_s": float, "end_s": float, "output_tokens": float, "warm_up": bool})
        else:
            table = table.astype({"end_s": float})
        table.insert(0, "request", np.arange(len(table)))
        return Cell(record, table)

    return build
