from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pandas as pd
import pytest
from command_line import speclab

from speclab import paths
from speclab.findings.long_table import COLUMNS
from speclab.record import lock

NAMED_IN_THE_DESIGN = {
    "speed_up", "crossover", "tokens_per_step", "step_time", "ms_per_accepted_token", "break_even_length",
    "drafting_time", "occupancy", "acceptance_by_position",
}  # fmt: skip


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


def test_every_finding_of_a_cell_has_an_interval() -> None:
    done = speclab("findings", "lab09", "--json")
    rows = [row for row in json.loads(done.stdout) if row["finding"] in ("speed_up", "break_even_length", "step_time")]
    assert rows
    assert all(row["low"] < row["value"] < row["high"] for row in rows)
    crossings = [row for row in json.loads(done.stdout) if row["finding"] == "crossover"]
    assert {row["status"] for row in crossings} <= {"ok", "not reached", "not resolved"}
    assert all(row["low"] < row["value"] < row["high"] for row in crossings if row["status"] == "ok")


def test_check_ends_with_1_where_a_verdict_rests_on_failed_cells(tmp_path: Path) -> None:
    sound = speclab("check", "lab09", "--json")
    rows = json.loads(sound.stdout)
    assert (sound.returncode, sound.stderr) == (0, "")
    assert {row["scope"] for row in rows} == {"lab", "cell"}
    assert all(row["remedy"] for row in rows if row["verdict"] != "PASS")
    shutil.copytree(paths.derived() / "cpu-smollm2", tmp_path / "derived" / "cpu-smollm2")
    file = next(tmp_path.glob("derived/cpu-smollm2/*/baseline.cells.csv"))
    cells = pd.read_csv(file)
    cells.loc[(cells["workload"] == "chat") & (cells["concurrency"] == 16), "failed_checks"] = "stationarity"
    cells.to_csv(file, index=False)
    noisy = speclab("check", "cpu-smollm2", "--data", tmp_path)
    assert noisy.returncode == 1
    assert "verdicts are withheld" in noisy.stdout
    assert noisy.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["findings", "lab10"], "unknown lab 'lab10'; the labs here: cpu-smollm2, lab09"),
        (["run", "lab09", "--arms", "medusa"], "labs/lab09/lab.yml: arms: unknown arm 'medusa'; the arms of lab09:"),
        (
            ["run", "lab09", "--concurrencies", "3", "--arms", "baseline"],
            "unknown concurrency 3; baseline of lab09 has 1, 4",
        ),
        (["run", "lab09", "--arms", "", "--dry-run"], "labs/lab09/lab.yml: arms: unknown arm ''; the arms of lab09:"),
        (["run", "lab09", "--concurrencies", "many"], "--concurrencies: found 'many'; give whole numbers"),
        (["run", "lab09", "--device", "../h100", "--dry-run"], "device: found '../h100'; use letters, digits"),
        (["findings", "lab09", "--finding", "speedup"], "--finding: unknown finding 'speedup'; there are"),
        (
            ["findings", "lab09", "--engine", "endpoint"],
            "no results of lab09 on the engine 'endpoint'; run `speclab run",
        ),
        (["run", "lab09", "--engine", "endpoint", "--arms", "baseline"], "give --base-url, or set SPECLAB_BASE_URL"),
        (["run", "lab09", "--engine", "endpoint"], "--arms: not given; one server serves one arm"),
        (["run", "lab09", "--engine", "endpoint", "--arms", "baseline,ngram-k8"], "--arms: found 'baseline,ngram-k8'"),
        *(
            (
                ["run", "lab09", "--engine", "endpoint", "--arms", "baseline", "--base-url", address],
                f"--base-url: found '{address}', which is no address of a server; give one like http://",
            )
            for address in ("http://[::1", "http://127.0.0.1:99999/v1")
        ),
        (["run", "lab09", "--length-s", "4"], "phases: found"),
        (["advise", "lab09", "--mix", "chat=.5"], "--mix: the shares add up to 0.5; make them add up to 1"),
        (["advise", "lab10"], "unknown lab 'lab10'; the labs here: cpu-smollm2, lab09"),
    ],
)
def test_a_users_mistake_is_one_line_and_exit_code_2(arguments: list[str], expected: str) -> None:
    done = speclab(*arguments)
    assert done.returncode == 2
    assert expected in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr


def test_advice_for_the_simulated_lab_and_for_the_measured_one() -> None:
    told = speclab("advise", "lab09", "--engine", "simulated", "--mix", "chat=.5,completion=.3,revision=.2")
    assert told.returncode == 0, told.stderr
    assert "mix: 50% chat, 30% completion, 20% revision of the tokens" in told.stdout
    assert "num_speculative_tokens_per_batch_size = [[1, " in told.stdout
    assert "one arm for all" in told.stdout
    done = speclab("advise", "cpu-smollm2", "--json")
    assert done.returncode == 0, done.stderr
    advice = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert advice["source"].startswith("measured (vLLM")
    assert list(advice["left_out"]) == ["eagle3-forced"], "its text is not the target's"
    assert "eagle3-forced" not in {served["arm"] for part in advice["parts"] for served in part["served"]}


def test_a_part_of_a_lab_runs_and_is_shown(tmp_path: Path) -> None:
    part = ("--workloads", "chat", "--concurrencies", "1,4", "--length-s", "12", "--out", tmp_path)
    run = speclab("run", "lab09", "--arms", "baseline,eagle3-k3", *part)
    assert run.returncode == 0, run.stderr
    assert "4 cells run, 0 kept, 0 failed" in run.stderr
    assert [line[:5] for line in run.stderr.splitlines() if line.endswith(" in flight")] == [
        f"[{n}/4]" for n in range(1, 5)
    ]
    again = speclab("run", "lab09", "--arms", "baseline,eagle3-k3", *part)
    assert "0 cells run, 4 kept, 0 failed" in again.stderr
    shown = speclab("show", "lab09", "--data", tmp_path)
    assert shown.returncode == 0, shown.stderr
    line = next(line for line in shown.stdout.splitlines() if line.startswith("eagle3-k3"))
    assert 2.0 < float(line.split()[1]) < 2.6
    assert "above 4" in line


def test_a_part_in_the_checkouts_own_folder_says_that_its_tables_are_not_kept(tmp_path: Path) -> None:
    labs = Path(__file__).parents[2] / "labs"
    shutil.copytree(labs, tmp_path / "labs")
    done = speclab("run", "lab09", "--arms", "baseline", "--workloads", "chat", "--concurrencies", "1",
                   SPECLAB_ROOT=str(tmp_path))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "give --out to keep these" in done.stderr
    assert not (tmp_path / "data" / "derived").exists()


def test_an_arm_that_cannot_run_says_why_once_and_the_arms_that_are_whole_are_kept(tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).parents[2] / "labs", tmp_path / "labs")
    arm = tmp_path / "labs" / "lab09" / "eagle3-k3.yml"
    arm.write_text(
        arm.read_text().replace("eagle3-head-8b", "smollm2-135m").replace("method: eagle3", "method: draft_model")
    )
    done = speclab("run", "lab09", "--arms", "baseline,eagle3-k3", "--workloads", "chat", "--concurrencies", "1,4",
                   "--out", tmp_path / "out", SPECLAB_ROOT=str(tmp_path))  # fmt: skip
    assert done.returncode == 1
    assert "4 cells run, 0 kept, 2 failed" in done.stderr
    lines = [line for line in done.stderr.splitlines() if "eagle3-k3: 2 of 2 cells failed; the first, chat 1" in line]
    assert len(lines) == 1
    assert "bad configuration" in lines[0]
    assert "Llama 3 8B has 128,256 tokens" in lines[0]


def test_a_sweep_that_stops_keeps_the_tables_of_the_arms_that_are_whole(tmp_path: Path) -> None:
    """Let the second arm stop the sweep: another run holds it."""
    part = ("--workloads", "chat", "--concurrencies", "1", "--length-s", "12", "--out", tmp_path)
    with lock.held(tmp_path / "runs" / "simulated-h100-sxm" / "lab09" / "eagle3-k3"):
        done = speclab("run", "lab09", "--arms", "baseline,eagle3-k3", *part)
    assert done.returncode == 2
    assert "another run is at work on this arm" in done.stderr.replace("\n", " ")
    assert (tmp_path / "derived" / "lab09" / "simulated-h100-sxm" / "baseline.cells.csv").exists()


def test_an_unknown_arm_is_named_before_anything_runs(tmp_path: Path) -> None:
    done = speclab("run", "lab09", "--arms", "baseline,medusa", "--concurrencies", "1", "--out", tmp_path)
    assert done.returncode == 2
    assert "unknown arm 'medusa'" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_there_is_is_shown(tmp_path: Path) -> None:
    part = ("--workloads", "chat", "--length-s", "12", "--out", tmp_path)
    run = speclab("run", "lab09", "--arms", "baseline", "--concurrencies", "1,4", *part)
    assert run.returncode == 0, run.stderr
    alone = speclab("show", "lab09", "--data", tmp_path)
    assert alone.returncode == 0, alone.stderr
    assert "nothing stands beside the baseline yet" in alone.stdout
    row = next(line.split() for line in alone.stdout.splitlines() if line.startswith("baseline"))
    assert [100 < float(value.replace(",", "")) < 700 for value in row[1:]] == [True, True]
    for arm, concurrencies in (("eagle3-k3", "4"), ("ngram-k2", "1,4")):
        speclab("run", "lab09", "--arms", arm, "--concurrencies", concurrencies, *part)
    both = speclab("show", "lab09", "--data", tmp_path)
    assert both.returncode == 0, both.stderr
    rows = {line.split()[0]: line.split() for line in both.stdout.splitlines() if "-k" in line}
    assert rows["eagle3-k3"][1] == "-"
    assert 1 < float(rows["eagle3-k3"][2]) < 3
    assert rows["eagle3-k3"][-2:] == ["-", "-"]
    assert 0.5 < float(rows["ngram-k2"][1]) < 2


def test_g7_a_run_and_what_it_shows_name_the_checks_that_fail(tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).parents[2] / "labs", tmp_path / "labs")
    lab = tmp_path / "labs" / "lab09" / "lab.yml"
    text = lab.read_text(encoding="utf-8")
    assert "max-num-seqs: 256" in text
    lab.write_text(text.replace("max-num-seqs: 256", "max-num-seqs: 2"), encoding="utf-8")
    part = ("--arms", "baseline", "--workloads", "chat", "--concurrencies", "1,4", "--length-s", "12")
    run = speclab("run", "lab09", *part, "--out", tmp_path / "out", SPECLAB_ROOT=str(tmp_path))
    assert run.returncode == 0, run.stderr
    assert "2 cells run, 0 kept, 0 failed, 1 with checks that FAIL" in run.stderr
    assert "baseline: running requests in 1 of 2: chat 4 r0" in run.stderr
    assert "what to do about each check: speclab check lab09 --data" in run.stderr
    shown = speclab("show", "lab09", "--data", tmp_path / "out", SPECLAB_ROOT=str(tmp_path))
    assert shown.returncode == 0, shown.stderr
    row = next(line.split() for line in shown.stdout.splitlines() if line.startswith("baseline") and "!" in line)
    assert [value.endswith("!") for value in row[1:]] == [False, True]
    assert "baseline: running requests in 1 of 2: chat 4 r0" in shown.stdout
    assert "what to do about each: speclab check lab09" in shown.stdout.replace("\n", " ")


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


def test_g10_a_dry_run_prints_the_command_of_each_server_as_a_shell_takes_it_and_no_key(tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).parents[2] / "labs", tmp_path / "labs")
    file = tmp_path / "labs" / "lab09" / "lab.yml"
    file.write_text(file.read_text().replace("\nenvironment:\n", "\nenvironment:\n  HF_TOKEN: hf_planted\n  A: b c\n"))
    done = speclab("run", "lab09", "--arms", "baseline,eagle3-k3", "--dry-run", "--engine", "vllm", "--device", "gpu",
                   SPECLAB_ROOT=str(tmp_path), VLLM_API_KEY="sk-planted-one")  # fmt: skip
    assert done.returncode == 0, done.stderr
    commands = [shlex.split(line) for line in done.stdout.splitlines() if line.startswith("env ")]
    assert [words[:6] for words in commands] == [
        ["env", "HF_TOKEN=...", "A=b c", "VLLM_USE_V2_MODEL_RUNNER=0", "python", "-m"]
    ] * 2
    assert commands[0][commands[0].index("--host") + 1] == "127.0.0.1"
    assert json.loads(commands[1][-1])["method"] == "eagle3"
    assert "planted" not in done.stdout + done.stderr


def test_a_lab_that_holds_a_secret_is_refused_before_it_is_in_a_record(tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).parents[2] / "labs", tmp_path / "labs")
    arm = tmp_path / "labs" / "lab09" / "baseline.yml"
    arm.write_text(f"server: {{api-key: sk-planted}}\n{arm.read_text()}")
    done = speclab("run", "lab09", "--arms", "baseline", "--out", tmp_path / "out", SPECLAB_ROOT=str(tmp_path))
    assert done.returncode == 2
    assert "server.api-key: a secret would be in every record; take it out" in done.stderr.replace("\n", " ")
    assert "planted" not in done.stdout + done.stderr
    assert [file for file in (tmp_path / "out").rglob("*") if file.is_file() and b"planted" in file.read_bytes()] == []


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


def test_the_labs_are_listed_with_the_cells_that_a_run_of_them_has(tmp_path: Path) -> None:
    done = speclab("labs")
    assert done.returncode == 0, done.stderr
    first_lines = [line.split() for line in done.stdout.splitlines() if not line.startswith("  ")]
    cells = {words[0]: words[-1] for words in first_lines}
    assert (cells["cpu-smollm2"], cells["lab09"]) == ("180", "90")
    run = speclab("run", "cpu-smollm2", "--device", "some-cpu", "--out", tmp_path, "--dry-run")
    assert "180 cells to run on vllm (some-cpu)" in run.stdout, run.stderr
