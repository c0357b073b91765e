"""An arm as it was recorded, on a machine that measured nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kept_lab import ARMS, CELLS, Machine
from speclab.engines import vllm
from speclab.errors import UserError
from speclab.results import lab_tables
from speclab.run import arms, run_arm
from speclab.run.kept import HIDDEN


@pytest.fixture
def root(tmp_path: Path, copy_kept_lab: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPECLAB_ROOT", str(tmp_path))
    copy_kept_lab(tmp_path)

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the machine was asked")

    for module, name in ((arms, "choose"), (vllm, "device"), (vllm, "slug"), (arms.models, "hold")):
        monkeypatch.setattr(module, name, refuse)
    return tmp_path


def test_kept_records_become_the_tables_of_the_machine_that_measured_them(root: Path) -> None:
    machine = Machine(root, "gpu-a", name="GPU A")
    machine.measures(*ARMS)
    run = run_arm("kept", "eagle3-k3", kept=True)
    assert (run.source, run.ran, run.kept) == ("measured (vLLM 0.33.0, GPU A)", 0, CELLS)
    assert run.absent.empty
    assert run.failed == run.tables.cells["failed_checks"].notna().tolist()
    folder = lab_tables.folder(root / "data", "kept", "vllm-gpu-a")
    assert {file.name for file in folder.iterdir()} == {f"eagle3-k3.{kind}.csv" for kind in lab_tables.KINDS}
    again = run_arm("kept", "eagle3-k3", kept=True)
    assert again.tables.cells.equals(run.tables.cells)
    assert again.made.equals(run.made)


def test_how_the_cells_were_made_is_told_without_secrets(root: Path) -> None:
    lab_file = root / "labs" / "kept" / "lab.yml"  # as of before a lab that holds a secret was refused
    lab_file.write_text(lab_file.read_text().replace('HF_HUB_OFFLINE: "1"', 'HF_HUB_OFFLINE: "1", HF_TOKEN: hf-123'))
    Machine(root, "gpu-a", name="GPU A", day=7).measures("baseline")
    made = run_arm("kept", "baseline", kept=True).made.set_index("what")["value"]
    assert made["server"] == "vLLM 0.33.0"
    assert made["device"] == "GPU A"
    assert made["first cell began"] == "2026-11-07T10:00:00+00:00"
    assert made["variables"] == f"HF_HUB_OFFLINE=1, HF_TOKEN={HIDDEN}"
    assert made["command"] == f"python -m vllm --api-key {HIDDEN} --max-num-batched-tokens 8192"
    assert made["length of a cell"] == "6 s, of which 1 s at its start and 1 s at its end are dropped"


def test_cells_that_are_missing_failed_or_of_another_version_are_named(root: Path) -> None:
    Machine(root, "gpu", "vLLM 0.33.0").measures("baseline", only=lambda asked: asked.workload == "chat")
    Machine(root, "gpu", "vLLM 0.33.0").measures("eagle3-k3")
    Machine(root, "gpu", "vLLM 0.32.0").measures("baseline", only=lambda asked: asked.cell == "revision-c001-r0")
    run = run_arm("kept", "baseline", kept=True)
    assert (run.kept, len(run.tables.cells)) == (2, 2)
    assert run.absent.to_numpy().tolist() == [
        ["completion", 1, 0, "not run"],
        ["completion", 4, 0, "not run"],
        ["revision", 1, 0, "measured (vLLM 0.32.0, gpu), not compared"],
        ["revision", 4, 0, "not run"],
    ]
    Machine(root, "gpu").fails_to_start("ngram-k8")
    failed = run_arm("kept", "ngram-k8", kept=True)
    assert failed.failed == [True] * CELLS
    assert set(failed.absent["state"]) == {"failed: out of memory: no room for the weights"}
    assert failed.not_passed.empty
    assert failed.made.empty


def test_an_arm_without_records_is_shown_as_such_and_leaves_no_table(root: Path) -> None:
    machine = Machine(root, "gpu")
    machine.measures("baseline")
    run = run_arm("kept", "ngram-k8", kept=True)
    assert (run.source, run.kept, run.failed, len(run.absent)) == (machine.source, 0, [], CELLS)
    assert run.tables.cells.empty
    assert run.not_passed.empty
    assert not (root / "data" / "derived").exists()


def test_cells_that_the_files_would_now_ask_for_differently_are_shown_and_named(root: Path) -> None:
    Machine(root, "gpu").measures("baseline")
    file = root / "labs" / "kept" / "lab.yml"
    file.write_text(file.read_text(encoding="utf-8").replace("length_s: 6", "length_s: 60"), encoding="utf-8")
    run = run_arm("kept", "baseline", kept=True)
    assert run.kept == CELLS
    assert set(run.absent["state"]) == {"shown as it was asked for: the lab's files have changed"}


def test_a_lab_without_records_says_how_to_make_them(root: Path) -> None:
    with pytest.raises(
        UserError, match=r"no records of kept on the engine 'vllm'; run `speclab run kept --engine vllm`"
    ):
        run_arm("kept", "baseline", kept=True)


def test_a_simulated_arm_says_what_was_assumed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("SPECLAB_ROOT", str(root))
    made = run_arm("kept", "ngram-k8", engine="simulated", out=root / "simulated").made.set_index("what")["value"]
    assert made["target"] == "llama-3-8b"
    assert made["host time of a step"] == "1.6 ms"
    assert "first cell began" not in made
