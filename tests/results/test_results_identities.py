"""Figures of one record agree with each other: in every cell of the committed measured lab, and in the simulator's."""

from __future__ import annotations

from pathlib import Path

import pytest

from kept_lab import ARMS, CELLS, write_lab
from speclab import paths
from speclab.metrics.checks.table import verdicts
from speclab.metrics.window import cut
from speclab.record import store

OF_EVENTS = ("event is a step", "engine steps", "usage", "counters", "speculation", "preemptions")
OF_DRAFTS = ("draft length", "draft positions", "drafted share", "tokens by counters")
THAT_A_MACHINE_MAY_BEND = ("answering", "bunched events")
"""Processor time that others took shows in these as a WARN."""


def verdicts_of(folder: Path) -> dict[str, str]:
    return {check.check: check.verdict for check in verdicts(cut(store.read(folder)))}


def cells_below(runs: Path) -> list[Path]:
    return sorted(file.parent for file in runs.glob(f"*/[!.]*-r0/{store.RECORD_FILE}"))


def test_real_vllm_holds_every_identity() -> None:
    folders = cells_below(next((paths.root() / "data" / "runs").glob("vllm-*/cpu-smollm2")))
    assert len(folders) > 40
    for folder in folders:
        made = verdicts_of(folder)
        assert {made[name] for name in OF_EVENTS if name != "usage"} == {"PASS"}, folder
        assert made["usage"] in ("PASS", "WARN"), "no answer need end in a full server's window"
        assert {made.get(name, "PASS") for name in OF_DRAFTS} == {"PASS"}, folder
        assert "FAIL" not in {made[name] for name in THAT_A_MACHINE_MAY_BEND}, folder


def test_the_simulator_holds_every_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECLAB_ROOT", str(tmp_path))
    write_lab(tmp_path)
    folders = cells_below(next((tmp_path / "simulated" / "runs").glob("simulated-*/kept")))
    assert len(folders) == len(ARMS) * CELLS
    for folder in folders:
        made = verdicts_of(folder)
        assert {made[name] for name in (*OF_EVENTS, *THAT_A_MACHINE_MAY_BEND)} == {"PASS"}, folder
        assert {made.get(name, "PASS") for name in OF_DRAFTS} == {"PASS"}, folder
