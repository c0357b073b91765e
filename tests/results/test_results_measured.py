"""The committed measurement: whole, of one machine, and its tables are what its records give."""

from __future__ import annotations

from pathlib import Path

import pytest

from speclab import lab as labs
from speclab import paths, results
from speclab.engines import EngineOptions
from speclab.errors import UserError
from speclab.record import store
from speclab.record.schema import CellRecord
from speclab.results import lab_tables
from speclab.run.plan import ArmPlan, plan_arm

LAB, ENGINE = "cpu-smollm2", "vllm"
ARMS = labs.load(LAB).arms


@pytest.fixture(scope="module")
def records() -> list[CellRecord]:
    return results.records(LAB, ENGINE)


def plan(arm: str, device: str) -> ArmPlan:
    return plan_arm(LAB, arm, options=EngineOptions(device=device))


def test_every_cell_was_measured_on_one_machine_with_one_revision_and_one_set_of_versions(
    records: list[CellRecord],
) -> None:
    assert {record.asked.arm for record in records} == set(ARMS)
    assert len({record.provenance.model_dump_json(include={"cpu", "platform", "packages"}) for record in records}) == 1
    revisions = {record.provenance.git_revision for record in records}
    assert len(revisions) == 1
    assert not any(revision is None or revision.endswith("+changes") for revision in revisions)


def test_repeats_are_interleaved(records: list[CellRecord]) -> None:
    repeats = [record.asked.repeat for record in records]  # in the order in which they began
    assert repeats == sorted(repeats)
    arms = [record.asked.arm for record in records if record.asked.repeat == 0]
    assert list(dict.fromkeys(arms)) == list(ARMS)


@pytest.mark.parametrize("arm", ARMS)
def test_the_records_are_those_that_the_labs_files_ask_for(records: list[CellRecord], arm: str) -> None:
    # another flag, prompt, length or way of measuring would ask for a new run
    assert plan(arm, records[0].asked.device).missing() == []


@pytest.mark.parametrize("arm", ARMS)
def test_the_committed_tables_are_what_the_records_give(records: list[CellRecord], arm: str, tmp_path: Path) -> None:
    asked = plan(arm, records[0].asked.device)
    lab_tables.write(lab_tables.of([store.read(asked.folder(cell)) for cell in asked.cells]), tmp_path, arm)
    kept = lab_tables.folder(paths.root() / "data", LAB, f"{ENGINE}-{records[0].asked.device}")
    for kind in lab_tables.KINDS:
        file = f"{arm}.{kind}.csv"
        assert (tmp_path / file).read_bytes() == (kept / file).read_bytes(), f"make {file} again: see CONTRIBUTING"


def test_each_model_that_was_served_has_its_digest() -> None:
    lab = labs.load(LAB)
    drafters = {speculation.model for arm in lab.arms if (speculation := lab.arm(arm).speculation)}
    wanted = {lab.target.model, *drafters} - {None}
    noted = results.models(LAB, ENGINE)
    assert noted.keys() == wanted
    assert all(digest.startswith("sha256:") for digest in noted.values())


def test_the_text_was_checked_in_both_formats_for_every_honest_arm() -> None:
    checks = results.text_checks(LAB, ENGINE)
    lab = labs.load(LAB)
    honest = [name for name in lab.arms if not lab.arm(name).is_forced]
    assert set(checks) == {"float32", "bfloat16"}
    for check in checks.values():
        assert [arm.arm for arm in check.arms] == honest
        assert all(arm.problem is None for arm in check.arms)


def test_records_of_no_machine_are_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "labs").symlink_to(paths.labs())
    monkeypatch.setenv("SPECLAB_ROOT", str(tmp_path))
    with pytest.raises(UserError, match="no records of cpu-smollm2; run `speclab run cpu-smollm2 --engine vllm`"):
        results.records(LAB, ENGINE)


def test_told_are_the_rows_that_passed() -> None:
    found = results.of("lab09", "simulated")
    rows = found.rows(["speed_up", "step_time"], arm=["eagle3-k3", "ngram-k8"], workload="chat", concurrency=1)
    assert sorted(rows["finding"]) == ["speed_up", "speed_up", "step_time", "step_time"]
    crossings = found.rows("crossover")
    assert 0 < len(found.ok_rows("crossover")) == (crossings["status"] == "ok").sum() < len(crossings)


@pytest.mark.parametrize(
    ("value", "status", "expected"),
    [(1.234, "ok", "1.23"), (1.234, "failed check", "1.23!"), (float("nan"), "failed check", "–")],
)
def test_a_value_that_failed_a_check_is_marked_and_one_that_is_missing_is_a_dash(
    value: float, status: str, expected: str
) -> None:
    assert results.marked(value, status) == expected


def test_a_written_table_has_the_values_of_the_wide_one_and_marks_what_failed(partly_failed: results.Results) -> None:
    found = partly_failed
    wide = found.wide("speed_up", workload="chat").set_index("arm")
    written = found.written("speed_up", workload="chat").set_index("arm")
    failed = found.rows("speed_up", workload="chat").query("status != 'ok'")
    assert written.shape == wide.shape
    assert (written.map(lambda text: float(text.rstrip("!").replace("–", "nan"))) - wide).abs().max().max() <= 0.005
    assert 0 < written.map(lambda text: text.endswith("!")).to_numpy().sum() == len(failed)
