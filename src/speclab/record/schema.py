"""The shape of a recorded cell, the same from every engine.

A cell is a folder with ``cell.json`` (a `CellRecord`) and ``requests.parquet`` (a row for each request,
`REQUEST_COLUMNS`). Times are seconds after the load's start, event offsets whole microseconds after the request's.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

import pyarrow as pa

from speclab.config import Frozen
from speclab.engines.base import EngineIdentity, FailureClass, Reading
from speclab.lab import (
    EngineName,
    Phases,
    Sampling,
    ServerFlag,
    SimulatedDrafter,
    SimulatedTarget,
    Speculation,
    WorkloadName,
)

SCHEMA_VERSION = 1

Status = Literal["ok", "failed"]

REQUEST_COLUMNS = pa.schema(
    [
        pa.field("request", pa.int32(), nullable=False),  # order of sending within the cell
        pa.field("prompt_id", pa.string(), nullable=False),
        pa.field("warm_up", pa.bool_(), nullable=False),  # a prompt that only the warm-up uses
        pa.field("prompt_tokens", pa.int32()),
        pa.field("output_tokens", pa.int32()),  # the server's usage; null where the answer did not end
        pa.field("start_s", pa.float64(), nullable=False),
        pa.field("end_s", pa.float64()),  # null: still in flight when the cell ended
        pa.field("event_us", pa.list_(pa.int32()), nullable=False),  # after start_s
        pa.field("event_tokens", pa.list_(pa.int16()), nullable=False),
        pa.field("finish_reason", pa.string()),
        pa.field("error", pa.string()),
        pa.field("text", pa.string()),
    ]
)


MAY_DIFFER = {"arm", "speculation", "simulated_drafter", "workload", "concurrency", "repeat", "endpoint",
              "drafter_shape_sha256"}  # fmt: skip
"""What makes an arm an arm, what its place in the lab is, and where its own server stands."""

LATER = ("endpoint", "drafter_shape_sha256")
"""Fields that came after the first records: where they are empty, a request's hash is the one of before."""


class CellSpec(Frozen):
    """Everything that decides what a cell measures; its hash names the cell's content."""

    lab: str
    arm: str
    workload: WorkloadName
    concurrency: int
    repeat: int
    engine: EngineName
    device: str
    endpoint: str | None = None
    """Address of the server that was up (engine ``endpoint``), without credentials: another one is another server."""
    target: str
    phases: Phases
    sampling: Sampling
    speculation: Speculation | None
    server: dict[str, ServerFlag]
    environment: dict[str, str]
    simulated_target: SimulatedTarget | None = None
    simulated_drafter: SimulatedDrafter | None = None
    drafter_shape_sha256: str | None = None
    """Hash of the figures of the simulated drafter's shape, which its name stands for."""
    prompts_sha256: str
    code_version: str
    """Another one when the same request would now be measured or simulated differently."""

    @property
    def sha256(self) -> str:
        """Hash of the whole request; a finished cell with the same hash is not run again."""
        empty = {name for name in LATER if getattr(self, name) is None}
        return _hash(self.model_dump(mode="json", exclude=empty))

    @property
    def conditions(self) -> str:
        """Short hash of what must be the same in an arm and its baseline: all but `MAY_DIFFER`."""
        return f"sha256:{_hash(self.model_dump(mode='json', exclude=MAY_DIFFER))[:12]}"

    @property
    def cell(self) -> str:
        """Name of the cell's folder."""
        return f"{self.workload}-c{self.concurrency:03d}-r{self.repeat}"


def _hash(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class Failure(Frozen):
    """Why a cell has no result."""

    kind: FailureClass
    reason: str
    log_tail: str = ""


class ClientLag(Frozen):
    """How late this client's event loop ran its timers, ms, and what it read at once."""

    mean_ms: float
    p99_ms: float
    max_ms: float
    reads: int | None = None
    """Reads from the network that brought events; None in a record from before they were counted."""
    merged_reads: int | None = None
    """Reads that brought more than one event of an answer: merged on the way, or by a client that came late."""


class Made(Frozen):
    """When, where and with what something was measured."""

    started_at: str
    ended_at: str
    git_revision: str | None
    python: str
    platform: str
    cpu: str
    packages: dict[str, str]
    extra: dict[str, Any] = {}


class Provenance(Made):
    """Where and with what a cell was made."""

    identity: EngineIdentity
    command: list[str] | None = None
    """The server's command line, where this project started it."""


class CellRecord(Frozen):
    """One cell: what was asked, and what happened."""

    schema_version: int = SCHEMA_VERSION
    asked: CellSpec
    asked_sha256: str
    status: Status
    failure: Failure | None = None
    window_s: tuple[float, float]
    readings: tuple[Reading, ...] = ()
    """At the window's first border, about each second inside it, and at its last border."""
    client_lag: ClientLag | None = None
    client_clean_rate_per_s: float | None = None
    """Events a second that this client sees as they are sent, by its self-test; None where that was not run."""
    requests_sha256: str | None = None
    """Hash of ``requests.parquet`` as it was written; None in a record from before it was kept."""
    provenance: Provenance
