from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from speclab.findings.table import COLUMNS

NAMED_IN_THE_DESIGN = {
    "speed_up", "crossover", "tokens_per_step", "step_time", "ms_per_accepted_token", "break_even_length",
    "drafting_time", "occupancy", "acceptance_by_position",
}  # fmt: skip


def speclab(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "speclab.cli", *map(str, arguments)],
        capture_output=True, text=True, env={"COLUMNS": "100", "PATH": "", **variables}, check=False,
    )  # fmt: skip


def test_findings_print_one_list_of_flat_objects() -> None:
    done = speclab("findings", "lab09", "--engine", "simulated", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert all(list(row) == COLUMNS for row in rows)
    assert {row["finding"] for row in rows} >= NAMED_IN_THE_DESIGN
    assert {row["source"] for row in rows} == {"simulated (h100-sxm)"}
    speed_ups = [row for row in rows if row["finding"] == "speed_up"]
    assert len(speed_ups) == 4 * 3 * 6
    assert all(row["status"] == "ok" and 0.3 < row["value"] < 4 for row in speed_ups)
    for row in rows:
        if row["status"] == "not reached":
            assert row["value"] is None


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["findings", "lab10"], "unknown lab 'lab10'; the labs here: cpu-smollm2, lab09"),
        (["run", "lab09", "--arms", "medusa"], "labs/lab09/lab.yml: arms: unknown arm 'medusa'; the arms of lab09:"),
        (
            ["run", "lab09", "--concurrencies", "3", "--arms", "baseline"],
            "unknown concurrency 3; baseline of lab09 has 1, 4",
        ),
        (["run", "lab09", "--concurrencies", "many"], "--concurrencies: found 'many'; give whole numbers"),
        (["findings", "lab09", "--finding", "speedup"], "--finding: unknown finding 'speedup'; there are"),
        (
            ["findings", "lab09", "--engine", "endpoint"],
            "no results of lab09 on the engine 'endpoint'; run `speclab run",
        ),
        (["run", "lab09", "--engine", "endpoint", "--arms", "baseline"], "give --base-url, or set SPECLAB_BASE_URL"),
        (["run", "lab09", "--length-s", "4"], "phases: found"),
    ],
)
def test_a_users_mistake_is_one_line_and_exit_code_2(arguments: list[str], expected: str) -> None:
    done = speclab(*arguments)
    assert done.returncode == 2
    assert expected in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr


def test_a_part_of_a_lab_runs_and_is_shown(tmp_path: Path) -> None:
    part = ("--workloads", "chat", "--concurrencies", "1,4", "--length-s", "12", "--out", tmp_path)
    run = speclab("run", "lab09", "--arms", "baseline,eagle3-k3", *part)
    assert run.returncode == 0, run.stderr
    assert "4 cells run, 0 kept, 0 failed" in run.stderr
    again = speclab("run", "lab09", "--arms", "baseline,eagle3-k3", *part)
    assert "0 cells run, 4 kept, 0 failed" in again.stderr
    shown = speclab("show", "lab09", "--data", tmp_path)
    assert shown.returncode == 0, shown.stderr
    line = next(line for line in shown.stdout.splitlines() if line.startswith("eagle3-k3"))
    assert 2.0 < float(line.split()[1]) < 2.6
    assert "above 4" in line


def test_a_dry_run_says_what_would_be_run_and_runs_nothing(tmp_path: Path) -> None:
    options = ("run", "lab09", "--arms", "baseline", "--concurrencies", "1,4", "--repeats", "2", "--out", tmp_path)
    done = speclab(*options, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert (
        "12 cells to run on simulated (h100-sxm): seconds" in done.stdout
    )  # 3 workloads x 2 concurrencies x 2 repeats
    assert list(tmp_path.iterdir()) == []
    vllm = speclab(*options, "--dry-run", "--engine", "vllm", "--device", "some-gpu")
    assert "about 0:13:30" in vllm.stdout  # 12 cells of 60 s, and the server started once for each repeat


def test_the_doctor_lists_what_is_missing_and_exits_1(tmp_path: Path) -> None:
    done = speclab("doctor", "lab09", "--no-selftest", "--json", HF_HOME=str(tmp_path))
    assert done.returncode == 1, done.stderr
    rows = json.loads(done.stdout)
    failing = {row["rule"] for row in rows if row["level"] == "will fail"}
    assert "target" in failing  # no hub cache and no token there
    assert all(row["remedy"] and row["cites"] for row in rows if row["level"] == "will fail")
    shown = speclab("doctor", "lab09", "--no-selftest", "--arms", "baseline,ngram-k8", HF_HOME=str(tmp_path))
    assert shown.returncode == 1
    assert "every arm" in shown.stdout
    assert "eagle3-k3" not in shown.stdout


def test_a_simulated_lab_needs_no_more_than_a_disk() -> None:
    done = speclab("doctor", "lab09", "--engine", "simulated")
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith("1 fine")


def test_the_labs_are_listed() -> None:
    done = speclab("labs")
    assert done.returncode == 0
    assert "lab09" in done.stdout
    assert "cpu-smollm2" in done.stdout
