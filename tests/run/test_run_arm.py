from __future__ import annotations

import asyncio
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from speclab import derived, results, run
from speclab import lab as labs
from speclab.engines import Options, simulated
from speclab.engines.base import Answer, EngineFailure
from speclab.errors import UserError
from speclab.load.closed_loop import CellLog
from speclab.metrics.checks import request_errors_check
from speclab.plan import plan_arm
from speclab.prompts.base import Prompt
from speclab.record import lock, store
from speclab.run import run_arm

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
    assert sum(file.suffix == ".csv" for file in kept) == len(derived.KINDS)
    run_arm("mini", "baseline", phases={"length_s": 8, "drop_first_s": 1, "drop_last_s": 1})
    assert {file: file.read_bytes() for file in sorted((mini / "data").rglob("*")) if file.is_file()} == kept


@pytest.mark.parametrize(
    ("failed", "of", "finished"), [(1, 100, True), (2, 100, False), (13, 17, False), (4, 4, False)]
)
def test_a_cell_with_too_many_failed_requests_is_not_finished(failed: int, of: int, finished: bool) -> None:
    prompt = Prompt("chat", "chat/01", "?")
    broken = [Answer(prompt, start_s=0.0, end_s=0.1, error="HTTP 429")] * failed
    served = [Answer(prompt, start_s=0.0, event_s=[8.0], event_tokens=[1])] * (of - failed)
    log = CellLog(start_s=0.0, answers=[*broken, *served], readings=[], lags_s=[])
    failure = run._failure(log, (1.0, 9.0))
    if finished:
        assert failure is None
    else:
        assert failure is not None
        assert failure.kind == "client error"
        assert failure.reason == f"{failed} of {of} requests failed; the first: HTTP 429"


@pytest.mark.parametrize(("moment_s", "is_hung"), [(0.5, True), (2.0, True), (4.9, True), (5.0, False), (9.0, True)])
def test_a_server_that_is_silent_to_the_end_of_the_window_hung(moment_s: float, is_hung: bool) -> None:
    answer = Answer(Prompt("chat", "chat/01", "?"), start_s=0.0, event_s=[moment_s], event_tokens=[1])
    failure = run._failure(CellLog(start_s=0.0, answers=[answer], readings=[], lags_s=[]), (1.0, 9.0))
    assert (failure is not None) == is_hung
    if failure is not None:
        assert (failure.kind, failure.reason) == ("hung", "no token in the last 4 s of the window, 1 requests sent")


def test_the_limit_of_failed_requests_is_the_checks() -> None:
    assert inspect.signature(request_errors_check).parameters["fail_above"].default == run.MOST_FAILED


def test_two_runs_on_one_arm_do_not_meet(mini: Path) -> None:
    plan = plan_arm("mini", "baseline")
    folder = plan.folder(plan.cells[0]).parent
    with lock.held(folder), pytest.raises(UserError, match=r"another run is at work on this arm \(pid \d+\)"):
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
        ({"options": Options(device="../h100")}, "device: found '../h100'; use letters, digits"),
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
        derived.read("mini", "vllm")


def test_a_server_that_dies_costs_one_cell_and_is_started_again(mini: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drive the loop that serves an arm with an engine whose server is gone after its first cell."""
    the_lab = labs.load("mini")
    arm = the_lab.arm("baseline")
    cells = plan_arm("mini", "baseline").cells
    opening = simulated.opening(the_lab, arm, "chat")
    starts = []

    class Mortal:
        """The simulator, until its second cell."""

        def __init__(self, engine: Any) -> None:
            self.engine, self.identity, self.opened_s = engine, engine.identity, asyncio.get_running_loop().time()

        async def send(self, answer: Any, sampling: Any) -> None:
            if asyncio.get_running_loop().time() > self.opened_s + 1.5 * the_lab.phases.length_s:
                raise EngineFailure("died mid-run", "the process is gone", log_tail="Killed")
            await self.engine.send(answer, sampling)

        async def read(self) -> Any:
            return await self.engine.read()

    class Session:
        async def __aenter__(self) -> Mortal:
            starts.append(1)
            self.inner = opening.engine()
            return Mortal(await self.inner.__aenter__())

        async def __aexit__(self, *problem: Any) -> None:
            await self.inner.__aexit__(*problem)

    chat_cells = [cell for cell in cells if cell.workload == "chat"]
    three = [chat_cells[0], chat_cells[1], chat_cells[0].model_copy(update={"repeat": 1})]
    mortal = run.Opening(opening.loop_factory, Session)
    with asyncio.Runner(loop_factory=mortal.loop_factory) as runner:
        runner.run(run._run_cells(mortal, three, the_lab, mini / "runs", None))
    records = [json.loads((store.cell_folder(mini / "runs", cell) / "cell.json").read_text()) for cell in three]
    assert [record["status"] for record in records] == ["ok", "failed", "ok"]
    assert records[1]["failure"] == {
        "kind": "died mid-run", "reason": "the process is gone", "log_tail": "Killed",
    }  # fmt: skip
    assert len(starts) == 2
