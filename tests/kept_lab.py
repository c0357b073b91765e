"""A small lab with records as if they had been measured: what the simulator gave, under another machine's name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from speclab.engines import EngineOptions
from speclab.engines.base import NOT_STARTED, EngineIdentity
from speclab.record import store
from speclab.record.schema import CellSpec, Failure
from speclab.run import run_arm
from speclab.run.plan import plan_arm

ARMS = ("baseline", "eagle3-k3", "ngram-k8")
CELLS = 6
"""Cells of each arm."""

_LAB = """
title: Kept
question: Where do these results come from?
engine: vllm
target: {model: meta-llama/Llama-3.1-8B-Instruct, tokens: llama-3.1}
arms: [baseline, eagle3-k3, ngram-k8]
workloads: [chat, completion, revision]
concurrencies: [1, 4]
phases: {length_s: 6, drop_first_s: 1, drop_last_s: 1}
sampling: {max_tokens: 64, seed: 9}
environment: {HF_HUB_OFFLINE: "1"}
simulated:
  device: h100-sxm
  shape: llama-3-8b
  answers:
    chat: {mean_tokens: 40, cv: 0.2}
    completion: {mean_tokens: 40, cv: 0.2}
    revision: {mean_tokens: 40, cv: 0.2}
"""
_ARMS = {
    "baseline": "lab: kept\narm: baseline\nlabel: Baseline\n",
    "eagle3-k3": """
lab: kept
arm: eagle3-k3
label: EAGLE-3
speculation: {method: eagle3, model: a/head, num_speculative_tokens: 3}
simulated:
  shape: eagle3-head-8b
  acceptance: {chat: [0.7, 0.5, 0.4], completion: [0.8, 0.6, 0.5], revision: [0.8, 0.7, 0.6]}
""",
    "ngram-k8": """
lab: kept
arm: ngram-k8
label: n-gram
speculation: {method: ngram, num_speculative_tokens: 2, prompt_lookup_min: 2, prompt_lookup_max: 4}
simulated:
  host_ms_per_step: 1.6
  draft_rate: {chat: 0.2, completion: 0.3, revision: 0.5}
  acceptance: {chat: [0.4, 0.3], completion: [0.5, 0.4], revision: [0.6, 0.5]}
""",
}


def write_lab(root: Path) -> None:
    """Write the lab and simulate its cells into a folder of their own, from which records are taken."""
    folder = root / "labs" / "kept"
    folder.mkdir(parents=True)
    (folder / "lab.yml").write_text(_LAB, encoding="utf-8")
    for arm, text in _ARMS.items():
        (folder / f"{arm}.yml").write_text(text, encoding="utf-8")
    for arm in ARMS:
        run_arm("kept", arm, engine="simulated", out=root / "simulated")


@dataclass(frozen=True)
class Machine:
    """A machine that the lab is measured on.

    Attributes
    ----------
    root : Path
        The checkout that `write_lab` wrote into.
    device : str
        Its slug.
    version : str
        The server's version.
    name : str or None
        What the driver calls its GPU.
    day : int
        Day of the month on which it measured.
    """

    root: Path
    device: str
    version: str = "vLLM 0.33.0"
    name: str | None = None
    day: int = 1

    def measures(self, *arms: str, only: Callable[[CellSpec], bool] = lambda _: True) -> None:
        """Record cells of some arms as finished here."""
        for asked, folder, simulated in self._cells(arms, only):
            record = store.read(simulated).record
            command = ["python", "-m", "vllm", "--api-key", "sk-456", "--max-num-batched-tokens", "8192"]
            made = record.provenance.model_copy(
                update={
                    "identity": self._identity(self.version),
                    "command": command,
                    "started_at": f"2026-11-{self.day:02d}T10:00:00+00:00",
                    "ended_at": f"2026-11-{self.day:02d}T10:01:00+00:00",
                }
            )
            table = pq.read_table(simulated / store.REQUESTS_FILE)
            update = {"asked": asked, "asked_sha256": asked.sha256, "provenance": made}
            store.write(folder, record.model_copy(update=update), table)

    def fails_to_start(self, *arms: str) -> None:
        """Record cells of some arms as failed, with a server that did not come up."""
        for asked, folder, simulated in self._cells(arms, lambda _: True):
            cell = store.read(simulated)
            update = {
                "asked": asked,
                "asked_sha256": asked.sha256,
                "status": "failed",
                "failure": Failure(kind="out of memory", reason="no room for the weights"),
                "readings": (),
                "provenance": cell.record.provenance.model_copy(update={"identity": self._identity(NOT_STARTED)}),
            }
            table = pq.read_table(simulated / store.REQUESTS_FILE)[:0]
            store.write(folder, cell.record.model_copy(update=update), table)

    @property
    def source(self) -> str:
        """The badge of its cells."""
        return self._identity(self.version).source

    def _identity(self, version: str) -> EngineIdentity:
        return EngineIdentity(engine="vllm", version=version, device=self.device, device_name=self.name)

    def _cells(self, arms: tuple[str, ...], only: Callable[[CellSpec], bool]) -> list[tuple[CellSpec, Path, Path]]:
        found = []
        for arm in arms:
            plan = plan_arm("kept", arm, engine="vllm", options=EngineOptions(device=self.device))
            simulated = plan_arm("kept", arm, engine="simulated", out=self.root / "simulated")
            pairs = zip(plan.cells, simulated.cells, strict=True)
            found += [(asked, plan.folder(asked), simulated.folder(other)) for asked, other in pairs if only(asked)]
        return found
