from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from speclab.cli.tables import comparison as rendered
from speclab.errors import UserError
from speclab.results import compare
from speclab.run import run_arm


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two small runs of Lab 9: the second has a slower drafter, a lower share of accepted drafts, and a third arm."""
    folders = tmp_path_factory.mktemp("a"), tmp_path_factory.mktemp("b")
    short = {"phases": {"length_s": 14, "drop_first_s": 4, "drop_last_s": 2}, "workloads": ["chat"],
             "concurrencies": [4]}  # fmt: skip
    for folder in folders:
        run_arm("lab09", "baseline", out=folder, **short)
    run_arm("lab09", "eagle3-k3", out=folders[0], **short)
    curve = [0.6, 0.4, 0.2]
    acceptance = dict.fromkeys(("chat", "completion", "revision"), curve)
    slower = {"shape": "eagle3-head-8b", "floor_ms_per_position": 0.6, "acceptance": acceptance}
    run_arm("lab09", "eagle3-k3", out=folders[1], simulated=slower, **short)
    run_arm("lab09", "ngram-k2", out=folders[1], **short)
    return folders


def test_what_changed_is_named_with_the_arm_that_it_changed_in(runs: tuple[Path, Path]) -> None:
    found = compare.compare(*runs).changed.set_index("what")
    assert found.loc["arm"].tolist() == ["ngram-k2", "not there", "there"]
    assert found.loc["simulated_drafter.floor_ms_per_position"].tolist() == ["eagle3-k3", "0.37", "0.6"]
    assert found.loc["simulated_drafter.acceptance.chat", "b"] == "[0.6, 0.4, 0.2]"
    assert len(found) == 3, "nothing else did, and the clock of a run is no change"


def test_what_came_of_it_is_told_from_what_stayed(runs: tuple[Path, Path]) -> None:
    made = compare.compare(*runs)
    status = made.cells.set_index(["finding", "arm"])["status"]
    assert status["system_throughput", "eagle3-k3"] == "lower"
    assert status["tokens_per_step", "eagle3-k3"] == "lower"
    assert status["step_time", "eagle3-k3"] == "higher"
    assert status["system_throughput", "baseline"] == "noise"
    assert status["system_throughput", "ngram-k2"] == "only in B"
    assert made.counted("system_throughput") == {"noise": 1, "lower": 1, "only in B": 1}
    assert any("run each cell more than once" in note for note in made.notes)


def test_json_is_strict(runs: tuple[Path, Path]) -> None:
    text = compare.to_json(compare.compare(*runs))
    read = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert set(read) == {"a", "b", "lab", "changed", "overall", "cells", "notes"}
    only_b = [row for row in read["cells"] if row["status"] == "only in B"]
    assert only_b
    assert all(row["a"] is None and row["ratio"] is None for row in only_b)


def test_the_terminal_shows_it(runs: tuple[Path, Path]) -> None:
    lines = [block for block in rendered(compare.compare(*runs)) if isinstance(block, str)]
    assert "  simulated_drafter.floor_ms_per_position (eagle3-k3): 0.37 → 0.6" in lines
    assert "system_throughput: 1 noise, 1 lower, 1 only in B" in lines


def test_the_folder_of_tables_itself_is_a_run_too(runs: tuple[Path, Path]) -> None:
    inside = runs[0] / "derived" / "lab09" / "simulated-h100-sxm"
    assert compare.find(inside).folder == compare.find(runs[0]).folder
    assert len(compare.find(inside).records) == 2


def test_without_records_the_tables_tell_what_they_can(runs: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.copytree(runs[1] / "derived", tmp_path / "derived")
    made = compare.compare(runs[0], tmp_path)
    assert made.b.records == ()
    assert made.changed["what"].tolist() == ["arm"], "the conditions that arms share are the same"
    assert any("known from the tables alone" in note for note in made.notes)


def test_what_cannot_be_compared_is_one_sentence(runs: tuple[Path, Path], tmp_path: Path) -> None:
    a, b = runs
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no such folder"):
        compare.compare(a, tmp_path / "nowhere")
    with pytest.raises(UserError, match="one run is needed, found: none"):
        compare.compare(a, tmp_path / "empty")
    with pytest.raises(UserError, match="both runs are the same folder"):
        compare.compare(a, a)
    with pytest.raises(UserError, match="found: lab09 on simulated-h100-sxm; choose with --lab"):
        compare.compare(a, b, lab="cpu-smollm2")
    other = tmp_path / "two"
    for name in ("lab09", "another"):
        shutil.copytree(b / "derived" / "lab09", other / "derived" / name)
    with pytest.raises(UserError, match="found: another on simulated-h100-sxm, lab09 on simulated-h100-sxm"):
        compare.compare(a, other)
    with pytest.raises(UserError, match="holds another; name two runs of one lab"):
        compare.compare(a, other / "derived" / "another" / "simulated-h100-sxm")
    assert compare.find(other, "lab09").lab == "lab09"


def test_runs_that_share_no_cell_are_told(runs: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.copytree(runs[1] / "derived", tmp_path / "derived")
    folder = tmp_path / "derived" / "lab09" / "simulated-h100-sxm"
    for file in folder.glob("*.cells.csv"):
        pd.read_csv(file).assign(concurrency=64).to_csv(file, index=False)
    with pytest.raises(UserError, match="no arm at the same workload and concurrency in both"):
        compare.compare(runs[0], tmp_path)
