"""A lab's results are those of one source; what lies beside it takes part in nothing, and is told."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kept_lab import ARMS, CELLS, Machine
from speclab import results
from speclab.findings import check_report
from speclab.results import lab_tables, source
from speclab.run import run_arm


@pytest.fixture
def root(copy_kept_lab: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copy = tmp_path / "checkout"
    copy_kept_lab(copy)
    monkeypatch.setenv("SPECLAB_ROOT", str(copy))
    return copy


def tabulate(*arms: str) -> None:
    for arm in arms or ARMS:
        run_arm("kept", arm, kept=True)


def test_of_two_machines_the_one_with_more_cells_is_shown_and_nothing_is_paired_across(root: Path) -> None:
    a, b = Machine(root, "gpu-a", name="GPU A"), Machine(root, "gpu-b")
    a.measures("baseline", "eagle3-k3")
    b.measures("baseline", only=lambda asked: asked.workload == "chat")
    b.measures("ngram-k8")
    tabulate()
    assert [(each.source, each.cells) for each in results.sources("kept")] == [(a.source, 12), (b.source, 8)]
    assert a.source == "measured (vLLM 0.33.0, GPU A)"
    found = results.of("kept")
    assert found.source == a.source
    assert set(found.tables.cells["arm"]) == {"baseline", "eagle3-k3"}
    assert set(found.findings["source"]) == {a.source}
    assert set(found.ok_rows("speed_up")["arm"]) == {"eagle3-k3"}
    assert {record.asked.device for record in results.records("kept", "vllm")} == {"gpu-a"}
    assert results.problems("kept") == [
        "Records of 2 machines: those of GPU A (12 cells) are shown, those of gpu-b (8 cells) are not compared with "
        "them.",
        "The arm ngram-k8 was not run with vLLM 0.33.0 on GPU A: nothing is said of it.",
    ]


def test_of_two_versions_in_one_folder_an_arm_of_one_has_no_baseline_of_the_other(root: Path) -> None:
    old, new = Machine(root, "gpu", "vLLM 0.32.0", day=1), Machine(root, "gpu", "vLLM 0.33.0", day=2)
    old.measures("baseline", "ngram-k8")
    new.measures("eagle3-k3")
    new.measures("ngram-k8", only=lambda asked: asked.concurrency == 4)
    tabulate()
    assert [(each.version, each.finished) for each in results.sources("kept")] == [
        ("vLLM 0.32.0", {"baseline": 6, "ngram-k8": 3}),
        ("vLLM 0.33.0", {"eagle3-k3": 6, "ngram-k8": 3}),
    ][::-1], "as many cells: the latest stands first"
    found = results.of("kept")
    assert set(found.tables.cells["source"]) == {new.source}
    assert found.ok_rows("speed_up").empty
    assert results.problems("kept") == [
        "Records of 2 versions of the server on gpu: those of vLLM 0.33.0 (9 cells) are shown, those of vLLM 0.32.0 "
        "(9 cells) are not compared with them.",
        "The baseline was not run with vLLM 0.33.0 on gpu: no speed-up can be computed.",
        "3 of 6 cells of the arm ngram-k8 are missing with vLLM 0.33.0 on gpu.",
    ]


def test_cells_of_two_sources_are_never_a_pair_even_in_one_table(root: Path) -> None:
    old, new = Machine(root, "gpu", "vLLM 0.32.0"), Machine(root, "gpu", "vLLM 0.33.0")
    old.measures("baseline")
    new.measures("eagle3-k3")
    tabulate("baseline", "eagle3-k3")
    whole = source.lab_tables.read_folder(root / "data" / "derived" / "kept" / "vllm-gpu", ARMS)
    assert set(whole.cells["source"]) == {old.source, new.source}
    both = results.Results(results.of("kept").lab, whole)
    pairs = both.rows(["speed_up", "break_even_length", "drafting_time", "crossover"], arm="eagle3-k3")
    assert len(pairs) >= 3 * CELLS
    assert pairs["value"].isna().all()
    assert "ok" not in set(pairs["status"])


@pytest.mark.parametrize(
    ("arms", "problem"),
    [
        (("baseline", "eagle3-k3"), "The arm ngram-k8 was not run: nothing is said of it."),
        (("eagle3-k3", "ngram-k8"), "The baseline was not run: no speed-up can be computed."),
    ],
)
def test_an_arm_that_was_not_run_is_named(root: Path, arms: tuple[str, ...], problem: str) -> None:
    Machine(root, "gpu").measures(*arms)
    tabulate()
    assert results.problems("kept") == [problem]
    found = results.of("kept")
    assert set(found.tables.cells["arm"]) == set(arms)
    assert found.ok_rows("system_throughput")["value"].notna().all()
    assert found.ok_rows("speed_up").empty == ("baseline" not in arms)


def test_a_server_that_did_not_start_belongs_to_its_machine(root: Path) -> None:
    machine = Machine(root, "gpu")
    machine.measures("baseline", "eagle3-k3")
    machine.fails_to_start("ngram-k8")
    tabulate()
    assert len(results.sources("kept")) == 1
    found = results.of("kept")
    assert set(found.tables.cells["source"]) == {machine.source}
    failed = found.tables.cells.query("status == 'failed'")
    assert (set(failed["arm"]), len(failed)) == ({"ngram-k8"}, CELLS)
    assert results.problems("kept") == []
    assert set(found.rows("speed_up", arm="ngram-k8")["status"]) == {"failed check"}


def test_a_lab_whose_servers_never_started_has_a_source_all_the_same(root: Path) -> None:
    Machine(root, "gpu").fails_to_start(*ARMS)
    tabulate()
    assert [each.cells for each in results.sources("kept")] == [0]
    assert set(results.of("kept").rows("speed_up")["status"]) == {"failed check"}


def test_a_whole_lab_of_one_source_has_no_problem(root: Path) -> None:
    Machine(root, "gpu").measures(*ARMS)
    tabulate()
    assert results.problems("kept") == []
    assert (results.sources("kept", "endpoint"), results.problems("kept", "endpoint")) == ([], [])


def test_tables_without_records_count_too(root: Path) -> None:
    Machine(root, "gpu").measures(*ARMS)
    tabulate()
    with_records = results.sources("kept")[0]
    shutil.rmtree(root / "data" / "runs")
    alone = results.sources("kept")[0]
    assert (alone.source, alone.finished, alone.measured_at) == (with_records.source, with_records.finished, "")


def test_the_committed_labs_come_from_one_source_each() -> None:
    assert [len(results.sources(lab)) for lab in ("lab09", "cpu-smollm2")] == [1, 1]
    assert [results.problems(lab) for lab in ("lab09", "cpu-smollm2")] == [[], []]


def test_f4_an_arm_that_failed_to_start_is_checked_and_shown_like_any_other(root: Path) -> None:
    machine = Machine(root, "gpu", name="A GPU")
    machine.measures("baseline", "eagle3-k3")
    machine.fails_to_start("ngram-k8")
    tabulate()
    found = results.of("kept")
    assert {found.tables.cells[name].dtype.name for name in ("failed_checks", "failure", "warned_checks")} <= {
        "str",
        "object",
    }
    lost = found.row("speed_up", arm="ngram-k8", workload="chat", concurrency=4)
    assert check_report.failed_at(lost.to_dict(), found.cells) == "ngram-k8: did not run (1)"
    of_arm = found.check_report[found.check_report["arm"] == "ngram-k8"].groupby("check")["verdict"].agg(list)
    assert of_arm["baseline beside it"] == ["PASS"]
    assert of_arm["cell ran"] == ["FAIL"] * CELLS


def test_f4_where_no_cell_failed_a_check_the_columns_that_say_so_are_text(tmp_path: Path) -> None:
    file = tmp_path / "derived" / "kept" / "vllm-gpu" / "baseline.cells.csv"
    file.parent.mkdir(parents=True)
    file.write_text("arm,workload,concurrency,repeat,source,status,failure,failed_checks\nbaseline,chat,1,0,s,ok,,\n")
    for kind in ("positions", "checks", "answers", "blocks", "replays"):
        file.with_name(f"baseline.{kind}.csv").write_text("\n")
    cells = lab_tables.read_folder(file.parent, ["baseline"]).cells
    assert cells[["failure", "failed_checks"]].isna().all(axis=None)
    assert cells["failed_checks"].str.split("; ").isna().all()
