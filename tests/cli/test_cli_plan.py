"""``speclab plan``, and ``speclab run --plan``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from speclab import lab as labs
from speclab.budget import run_plan
from speclab.cli import cli
from speclab.errors import UserError
from speclab.record import store
from speclab.run import run_arm


def speclab(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    cli([str(argument) for argument in arguments], standalone_mode=False)
    return capsys.readouterr().out


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout with a small lab that has been run three times."""
    monkeypatch.setenv("SPECLAB_ROOT", str(tmp_path))
    folder = tmp_path / "labs" / "small"
    folder.mkdir(parents=True)
    (folder / "lab.yml").write_text(
        "title: Small\nquestion: What would an hour buy?\narms: [baseline, eagle3-k3]\nworkloads: [chat]\n"
        "target: {model: meta-llama/Llama-3.1-8B-Instruct, tokens: llama-3.1}\nconcurrencies: [1, 8]\nrepeats: 3\n"
        "phases: {length_s: 6, drop_first_s: 1, drop_last_s: 1}\nsampling: {max_tokens: 64, seed: 9}\n"
        "simulated: {device: h100-sxm, shape: llama-3-8b, answers: {chat: {mean_tokens: 40, cv: 0.3}}}\n"
    )
    (folder / "baseline.yml").write_text("lab: small\narm: baseline\nlabel: Baseline\n")
    (folder / "eagle3-k3.yml").write_text(
        "lab: small\narm: eagle3-k3\nlabel: EAGLE-3\n"
        "speculation: {method: eagle3, model: a/head, num_speculative_tokens: 3}\n"
        "simulated: {shape: eagle3-head-8b, floor_ms_per_position: 0.37, acceptance: {chat: [0.7, 0.5, 0.4]}}\n"
    )
    for arm in ("baseline", "eagle3-k3"):
        run_arm("small", arm)
    return tmp_path


def test_a_plan_of_the_measured_lab_says_what_hours_buy(capsys: pytest.CaptureFixture[str]) -> None:
    plan: dict[str, Any] = json.loads(speclab(capsys, "plan", "cpu-smollm2", "--hours", "1", "--json"))
    assert plan["hours"] <= plan["hours_given"] == 1
    assert 0 < plan["reached"] < plan["asked"]
    assert plan["reached"] == len(plan["speed_ups"])
    assert plan["asked"] == plan["reached"] + len(plan["missing"])
    assert all(row["half_width"] <= 0.05 + 1e-9 and row["low"] < row["half_width"] for row in plan["speed_ups"])
    assert plan["half_width_of_all"] > 0.05
    assert plan["next_hour"]["gained"]
    planned = {(cell["arm"], cell["workload"], cell["concurrency"]) for cell in plan["cells"]}
    assert all(("baseline", workload, at) in planned for _, workload, at in planned)


def test_a_plan_reads_from_the_top(capsys: pytest.CaptureFixture[str], small: Path) -> None:
    text = speclab(capsys, "plan", "small", "--half-width", "4%")
    assert "half-widths of 4% at 2 of 2 speed-ups" in text
    for part in ("baseline", "eagle3-k3", "What it will show", "Where the next hour goes", "longer windows"):
        assert part in text


def test_run_follows_a_plan_and_keeps_it_as_a_trial(capsys: pytest.CaptureFixture[str], small: Path) -> None:
    file = small / "plan.yml"
    speclab(capsys, "plan", "small", "--half-width", "0.03", "--write", file)
    written = file.read_text()
    longer = re.sub("(baseline, .*concurrency: 8, phases: {length_s: )", r"\g<1>1", written)
    assert longer != written, "the baseline's window is ten seconds longer than the arm's beside it"
    file.write_text(longer)
    plan = run_plan.read(file, labs.load("small"))
    before = {path: path.read_bytes() for path in (small / "data").rglob("cell.json")}
    speclab(capsys, "run", "small", "--plan", file)
    records = [
        store.read_record(path.parent)
        for path in (small / ".build" / "trials" / "runs").rglob("cell.json")
    ]  # fmt: skip
    assert len(records) == plan.repeats * len(plan.cells)
    for record in records:
        asked = record.asked
        assert asked.phases == plan.phases(asked.arm)[asked.workload, asked.concurrency]
    assert len({record.asked.conditions for record in records}) == 1, "windows of other lengths are no other conditions"
    assert len({record.asked.phases for record in records}) > 1
    assert {path: path.read_bytes() for path in (small / "data").rglob("cell.json")} == before
    shown = speclab(
        capsys, "findings", "small", "--data", small / ".build" / "trials", "--finding", "speed_up", "--json"
    )
    rows = json.loads(shown)
    assert [(row["status"], row["n"]) for row in rows] == [("ok", plan.repeats)] * 2


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["plan", "cpu-smollm2", "--half-width", "0"], "--half-width: found '0'; give a share of the speed-up above 0"),
        (["plan", "cpu-smollm2", "--half-width", "200%"], "--half-width: found '200%'; give a share"),
        (["plan", "cpu-smollm2", "--half-width", "5"], "--half-width: found '5'; give a share"),
        (["plan", "cpu-smollm2", "--half-width", "narrow"], "--half-width: found 'narrow'; give a share"),
        (["plan", "cpu-smollm2", "--hours", "0"], "--hours: found 0; give more than 0 hours"),
        (["plan", "cpu-smollm2", "--hours", "-2"], "--hours: found -2; give more than 0 hours"),
        (["plan", "cpu-smollm2", "--hours", "nan"], "--hours: found nan; give more than 0 hours"),
        (["plan", "lab10"], "unknown lab 'lab10'"),
        (["plan", "lab09", "--engine", "endpoint"], "no results of lab09 on the engine 'endpoint'"),
        (["plan", "lab09", "--engine", "simulated"], "every cell has one repeat"),
        (["plan", "lab09", "--engine", "simulated", "--backtest"], "the lab has 1 finished repeats"),
    ],
)
def test_what_cannot_be_planned_is_one_line_and_no_verdict(
    capsys: pytest.CaptureFixture[str], arguments: list[str], problem: str
) -> None:
    with pytest.raises(UserError) as error:
        speclab(capsys, *arguments)
    assert problem in str(error.value)
    assert capsys.readouterr().out == ""


def test_a_plan_that_buys_nothing_says_so_and_writes_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="the plan holds no cell"):
        speclab(capsys, "plan", "cpu-smollm2", "--hours", "0.01", "--write", tmp_path / "plan.yml")
    assert "at none of" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_a_plan_has_phases_of_its_own(capsys: pytest.CaptureFixture[str], small: Path) -> None:
    file = small / "plan.yml"
    speclab(capsys, "plan", "small", "--write", file)
    with pytest.raises(UserError, match="--plan: given with other phases or repeats"):
        speclab(capsys, "run", "small", "--plan", file, "--repeats", "2")


def test_a_backtest_holds_forecasts_beside_what_was_reached(capsys: pytest.CaptureFixture[str]) -> None:
    made = json.loads(speclab(capsys, "plan", "cpu-smollm2", "--backtest", "--json"))
    rows = made["speed_ups"]
    assert made["places"] == len(rows) == 45
    assert made["repeats"] == sum(len(row["distances"]) for row in rows)
    # what a repeat did is forecast by the other two: 95% should lie inside, and 1 should be their scatter
    assert made["inside"] / made["repeats"] > 0.9
    assert 0.7 < made["scatter"] < 1.3
    assert all(row["of_workload"] >= row["forecast"] for row in rows)
    text = speclab(capsys, "plan", "cpu-smollm2", "--backtest")
    assert "forecast standard errors" in text
    assert "eagle3-k3 chat 1 " in text
