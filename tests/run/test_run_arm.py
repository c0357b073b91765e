from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from speclab import lab as labs
from speclab import results, run
from speclab.engines import EngineOptions
from speclab.errors import UserError
from speclab.record import lock
from speclab.results import lab_tables, source
from speclab.run import arms as arms_of_a_run
from speclab.run import run_arm
from speclab.run.plan import plan_arm

LAB = """
title: Mini
question: Does a run keep what it has?
target: {model: meta-llama/Llama-3.1-8B-Instruct, tokens: llama-3.1}
arms: [baseline, eagle3-k3]
workloads: [chat, revision]
concurrencies: [1, 4]
phases: {length_s: 6, drop_first_s: 1, drop_last_s: 1}
sampling: {max_tokens: 64, seed: 9}
simulated:
  device: h100-sxm
  shape: llama-3-8b
  answers: {chat: {mean_tokens: 40, cv: 0.2}, revision: {mean_tokens: 40, cv: 0.2}}
"""
EAGLE = """
lab: mini
arm: eagle3-k3
label: EAGLE-3
speculation: {method: eagle3, model: a/head, num_speculative_tokens: 3}
simulated:
  shape: eagle3-head-8b
  floor_ms_per_position: 0.37
  acceptance: {chat: [0.7, 0.5, 0.4], revision: [0.8, 0.7, 0.6]}
"""


@pytest.fixture
def mini(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPECLAB_ROOT", str(tmp_path))
    folder = tmp_path / "labs" / "mini"
    folder.mkdir(parents=True)
    (folder / "lab.yml").write_text(LAB)
    (folder / "baseline.yml").write_text("lab: mini\narm: baseline\nlabel: Baseline\n")
    (folder / "eagle3-k3.yml").write_text(EAGLE)
    return tmp_path


def cell_bytes(root: Path) -> dict[str, bytes]:
    return {str(file.relative_to(root)): file.read_bytes() for file in sorted(root.rglob("requests.parquet"))}


def test_a_run_records_each_cell_and_a_second_run_keeps_them_all(mini: Path) -> None:
    first = run_arm("mini", "eagle3-k3")
    assert (first.ran, first.kept) == (4, 0)
    assert first.source == "simulated (h100-sxm)"
    assert first.tables.cells["status"].tolist() == ["ok"] * 4
    before = cell_bytes(mini)
    assert len(before) == 4
    second = run_arm("mini", "eagle3-k3")
    assert (second.ran, second.kept) == (0, 4)
    assert cell_bytes(mini) == before
    assert second.tables.cells.equals(first.tables.cells)


def test_the_same_request_gives_the_same_bytes_in_another_folder(mini: Path) -> None:
    run_arm("mini", "eagle3-k3", out=mini / "a")
    run_arm("mini", "eagle3-k3", out=mini / "b")
    assert list(cell_bytes(mini / "a").values()) == list(cell_bytes(mini / "b").values())


def test_only_what_is_missing_or_was_asked_for_differently_is_run(mini: Path) -> None:
    run_arm("mini", "eagle3-k3")
    store_folder = mini / "data" / "runs" / "simulated-h100-sxm" / "mini" / "eagle3-k3"
    (store_folder / "chat-c001-r0" / "requests.parquet").unlink()
    assert run_arm("mini", "eagle3-k3").ran == 1
    arm_file = mini / "labs" / "mini" / "eagle3-k3.yml"
    arm_file.write_text(EAGLE.replace("revision: [0.8,", "revision: [0.9,"))
    edited = run_arm("mini", "eagle3-k3")
    assert (edited.ran, edited.kept) == (2, 2), "chat does not depend on what was assumed for revision"


def test_values_that_are_given_replace_those_of_the_file(mini: Path) -> None:
    changed = {"shape": "eagle3-head-8b", "floor_ms_per_position": 5.0, "acceptance": {"chat": [0.7, 0.5, 0.4]}}
    out = mini / "out"
    slow = run_arm("mini", "eagle3-k3", workloads=["chat"], concurrencies=[1], simulated=changed, out=out)
    fast = run_arm("mini", "eagle3-k3", workloads=["chat"], concurrencies=[1])
    added = float(slow.tables.cells["step_time"].iloc[0]) - float(fast.tables.cells["step_time"].iloc[0])
    assert added == pytest.approx(3 * (5.0 - 0.37), rel=1e-3)


def test_a_part_of_a_lab_does_not_replace_the_whole_tables(mini: Path) -> None:
    run_arm("mini", "baseline")
    tables = mini / "data" / "derived" / "mini" / "simulated-h100-sxm" / "baseline.cells.csv"
    whole = tables.read_text()
    run_arm("mini", "baseline", workloads=["chat"])
    assert tables.read_text() == whole
    run_arm("mini", "baseline", workloads=["chat"], out=mini / "part")
    part = mini / "part" / "derived" / "mini" / "simulated-h100-sxm" / "baseline.cells.csv"
    assert len(part.read_text().splitlines()) == 1 + 2


@pytest.mark.parametrize(
    "trial",
    [
        {"phases": {"length_s": 8, "drop_first_s": 1, "drop_last_s": 1}},
        {"simulated": {"floor_ms_per_position": 5.0, "acceptance": {"chat": [0.7], "revision": [0.8]}}},
        {"server": {"max-num-seqs": 2}},
    ],
)
def test_a_trial_with_other_values_has_a_folder_of_its_own(mini: Path, trial: dict[str, Any]) -> None:
    plan = plan_arm("mini", "eagle3-k3", **trial)
    assert (plan.is_trial, plan.keeps_tables, plan.data) == (True, True, mini / ".build" / "trials")
    elsewhere = plan_arm("mini", "eagle3-k3", **trial, out=mini / "trial")
    assert (elsewhere.keeps_tables, elsewhere.data) == (True, mini / "trial")


@pytest.mark.parametrize("given", [{"label": "Another"}, {"repeats": 2}])
def test_another_label_or_more_repeats_ask_for_the_same_cells(mini: Path, given: dict[str, Any]) -> None:
    plan = plan_arm("mini", "eagle3-k3", **given)
    assert (plan.is_trial, plan.keeps_tables, plan.data) == (False, False, mini / "data")


def test_the_arms_own_values_given_again_are_no_trial(mini: Path) -> None:
    """What papermill does: it gives each key of the arm's file."""
    arm = labs.load("mini").arm("eagle3-k3")
    given = arm.model_dump(include={"label", "speculation", "server", "simulated", "repeats"})
    assert plan_arm("mini", "eagle3-k3", **given).keeps_tables


def test_a_trial_leaves_the_checkouts_records_and_tables_as_they_are(mini: Path) -> None:
    run_arm("mini", "baseline")
    kept = {file: file.read_bytes() for file in sorted((mini / "data").rglob("*")) if file.is_file()}
    assert sum(file.suffix == ".csv" for file in kept) == len(lab_tables.KINDS)
    run_arm("mini", "baseline", phases={"length_s": 8, "drop_first_s": 1, "drop_last_s": 1})
    assert {file: file.read_bytes() for file in sorted((mini / "data").rglob("*")) if file.is_file()} == kept


def test_two_runs_on_one_arm_do_not_meet(mini: Path) -> None:
    plan = plan_arm("mini", "baseline")
    folder = plan.folder(plan.cells[0]).parent
    with lock.held(folder), pytest.raises(UserError, match="another run is at work on this arm"):
        run.run(plan)
    assert [path.name for path in folder.iterdir()] == [lock.LOCK_FILE]
    assert run.run(plan) == 4
    with lock.held(folder):
        assert run.run(plan) == 0, "nothing is missing, so nothing is locked"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"workloads": ["poetry"]}, "workload: unknown workload 'poetry'; eagle3-k3 of mini has chat, revision"),
        ({"concurrencies": [3]}, "concurrency: unknown concurrency 3; eagle3-k3 of mini has 1, 4"),
        ({"speculation": {"method": "eagle3"}}, "speculation.num_speculative_tokens: missing; add this key"),
        ({"workloads": "chat"}, "workloads: found 'chat'; write a list: [chat, revision]"),
        ({"concurrencies": 1}, "concurrencies: found 1; write a list: [1, 4]"),
        ({"engine": "simulatd"}, "engine: found 'simulatd'; choose one of simulated, endpoint, vllm"),
        ({"repeats": "2"}, "repeats: found '2'; give a whole number"),
        (
            {"simulated": {"device": "h100-sxm", "shape": "llama-3-8b", "answers": {}}},
            "simulated: found a lab's assumptions, as in lab.yml; give an arm's file",
        ),
        ({"options": EngineOptions(device="../h100")}, "device: found '../h100'; use letters, digits"),
        ({"engine": "endpoint"}, "has no address; give --base-url, or set SPECLAB_BASE_URL"),
    ],
)
def test_a_mistake_in_what_is_given_is_named(mini: Path, given: dict[str, Any], expected: str) -> None:
    with pytest.raises(UserError) as error:
        run_arm("mini", "eagle3-k3", **given)
    assert expected in str(error.value)


def test_an_arm_that_cannot_be_served_is_failed_cells_with_the_reason_and_the_rest_goes_on(mini: Path) -> None:
    draft = EAGLE.replace("method: eagle3", "method: draft_model").replace("eagle3-head-8b", "llama-3.2-1b")
    (mini / "labs" / "mini" / "eagle3-k3.yml").write_text(draft)
    lab_file = mini / "labs" / "mini" / "lab.yml"
    lab_file.write_text(LAB + "server: {gpu-memory-utilization: 0.2}\n")
    failed = run_arm("mini", "eagle3-k3")
    assert set(failed.tables.cells["status"]) == {"failed"}
    assert failed.tables.cells["failure"].str.contains("out of memory").all()
    lab_file.write_text(LAB)
    again = run_arm("mini", "eagle3-k3")
    assert again.ran == 4
    assert set(again.tables.cells["status"]) == {"ok"}


def test_a_draft_vocabulary_that_does_not_fit_is_a_bad_configuration(mini: Path) -> None:
    wrong = EAGLE.replace("method: eagle3", "method: draft_model").replace("eagle3-head-8b", "smollm2-135m")
    (mini / "labs" / "mini" / "eagle3-k3.yml").write_text(wrong)
    failed = run_arm("mini", "eagle3-k3")
    reasons = set(failed.tables.cells["failure"])
    assert len(reasons) == 1
    assert "Llama 3 8B has 128,256 tokens, SmolLM2 135M has 49,152" in reasons.pop()


def test_a_half_written_data_folder_is_repaired_by_the_next_run(mini: Path) -> None:
    run_arm("mini", "baseline")
    folder = mini / "data" / "runs" / "simulated-h100-sxm" / "mini" / "baseline"
    kept = (folder / "chat-c004-r0" / "requests.parquet").read_bytes()
    (folder / "chat-c001-r0" / "cell.json").write_text('{"schema_version": 1, "asked": ')
    damaged = folder / "revision-c004-r0" / "requests.parquet"
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:200] + bytes(byte ^ 0x5A for byte in whole[200:900]) + whole[900:])
    (folder / ".revision-c001-r0.new").mkdir()
    repaired = run_arm("mini", "baseline")
    assert (repaired.ran, repaired.kept) == (2, 2)
    assert (folder / "chat-c004-r0" / "requests.parquet").read_bytes() == kept
    assert damaged.read_bytes() == whole
    assert not list(folder.glob(".*.new"))


def test_an_arm_may_run_a_part_of_the_lab_more_often(mini: Path) -> None:
    arm_file = mini / "labs" / "mini" / "eagle3-k3.yml"
    arm_file.write_text(EAGLE + "workloads: [chat]\nconcurrencies: [4]\nrepeats: 2\n")
    plan = plan_arm("mini", "eagle3-k3")
    assert [asked.cell for asked in plan.cells] == ["chat-c004-r0", "chat-c004-r1"]
    assert run.run(plan, repeat=1) == 1
    assert [asked.cell for asked in plan.missing()] == ["chat-c004-r0"]
    assert run.run(plan) == 1
    tables = run.tables_of(plan)
    tokens = tables.cells["system_throughput"].tolist()
    assert tokens[0] != tokens[1], "a repeat draws its acceptance anew"


def test_arms_side_by_side_take_turns_at_each_cell(mini: Path) -> None:
    arms = ("baseline", "eagle3-k3")
    plans = [plan_arm("mini", arm, engine="vllm", repeats=2, options=EngineOptions(device="here")) for arm in arms]
    order = [
        [(asked.arm, asked.workload, asked.concurrency) for _, asked in batch]
        for batch in arms_of_a_run._batches(plans, None)
    ]
    expected = [
        ("baseline", "chat", 1), ("eagle3-k3", "chat", 1),
        ("eagle3-k3", "chat", 4), ("baseline", "chat", 4),
        ("baseline", "revision", 1), ("eagle3-k3", "revision", 1),
        ("eagle3-k3", "revision", 4), ("baseline", "revision", 4),
    ]  # fmt: skip
    assert order == [expected, expected], "new servers for each repeat"
    assert [len(batch) for batch in arms_of_a_run._batches(plans[:1], 1)] == [4]
    simulated = [plan_arm("mini", arm) for arm in arms]
    assert [len(batch) for batch in arms_of_a_run._batches(simulated, None)] == [1] * 8


def test_findings_can_be_read_from_what_the_run_left(mini: Path) -> None:
    for arm in ("baseline", "eagle3-k3"):
        run_arm("mini", arm)
    found = results.of("mini")
    expected = found.value("system_throughput", arm="eagle3-k3", workload="chat", concurrency=1) / found.value(
        "system_throughput", arm="baseline", workload="chat", concurrency=1
    )
    assert found.value("speed_up", arm="eagle3-k3", workload="chat", concurrency=1) == pytest.approx(expected)
    assert found.crossing("eagle3-k3", "chat") == "above 4"
    wide = found.wide("speed_up", workload="chat")
    assert wide["arm"].tolist() == ["eagle3-k3"]
    assert wide.columns.tolist() == ["arm", "1", "4"]
    with pytest.raises(LookupError, match="0 rows of speed_up"):
        found.value("speed_up", arm="baseline", workload="chat", concurrency=1)


def test_a_lab_that_was_not_run_says_what_to_do(mini: Path) -> None:
    with pytest.raises(
        UserError, match=r"no results of mini on the engine 'vllm'; run `speclab run mini --engine vllm`"
    ):
        source.read("mini", "vllm")
