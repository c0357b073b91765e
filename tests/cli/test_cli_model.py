from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from speclab.cli import cli
from speclab.errors import UserError
from speclab.replications.chapter10 import device_table, saturation

RUNNER = CliRunner()


def printed(*arguments: str) -> list[dict[str, object]]:
    done = RUNNER.invoke(cli, ["model", *arguments, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    rows: list[dict[str, object]] = json.loads(done.output, parse_constant=pytest.fail)
    return rows


def test_the_table_is_what_the_book_shows() -> None:
    rows = printed("table")
    assert rows == device_table().to_dict("records")
    assert list(rows[0])[:8] == [
        "device", "context", "batch", "plain_ms_per_token", "speculative_ms_per_token", "plain_bound", "verify_bound",
        "speed_up",
    ]  # fmt: skip


def test_a_table_of_one_s_own() -> None:
    rows = printed("table", "--device", "h200,b200", "--batch", "1,64", "--context", "1024", "--gamma", "5",
                   "--alpha", "0.8")  # fmt: skip
    assert [(row["device"], row["batch"]) for row in rows] == [
        ("h200-sxm", 1), ("h200-sxm", 64), ("b200", 1), ("b200", 64),
    ]  # fmt: skip
    assert rows == device_table(["h200-sxm", "b200"], [1024], [1, 64], k=5, alpha=0.8).to_dict("records")


def test_closed_forms_are_one_list() -> None:
    rows = printed("closed-forms")
    forms = [row["form"] for row in rows]
    assert (forms.count("table1"), forms.count("draws"), forms.count("theorems")) == (6, 6, 8)
    assert all(value is not None for row in rows for value in row.values())


def test_saturation_at_one_rate() -> None:
    assert printed("saturation", "--rate", "0.5") == saturation([0.5]).to_dict("records")


def test_the_animation_s_recordings() -> None:
    rows = printed("animation")
    assert [row["variant"] for row in rows] == ["off", "gamma-3-alpha-0.7", "gamma-5-alpha-0.8", "gamma-3-alpha-0.4"]
    assert (rows[0]["k"], rows[0]["alpha"], rows[1]["k"], rows[1]["alpha"]) == (0, None, 3, 0.7)
    assert [sum(kept) for row in rows for kept in row["kept"]] == [39] * 8


def test_the_sweep_of_one_device_and_workload() -> None:
    rows = printed("sweep", "--device", "h100", "--workload", "offline-batch")
    assert list(rows[0])[:7] == ["device", "workload", "lever", "metric", "value", "change", "mark"]
    assert len(rows) == 3 * 6
    assert {row["device"] for row in rows} == {"h100-sxm"}
    changes = {(row["lever"], row["metric"]): row["change"] for row in rows}
    assert changes["baseline", "itl_p99_s"] is None
    assert f"{changes['draft-1b', 'itl_p99_s']:+.0%}" == "+177%"


def test_all_metrics_of_a_point() -> None:
    (row,) = printed("sweep", "--points", "--device", "h100", "--workload", "offline-batch", "--speculation", "eagle3")
    assert {"slo_0_5x", "tokens_per_pass", "draft_share", "capacity_rate", "assumed"} <= row.keys()


def test_tables_in_the_terminal() -> None:
    done = RUNNER.invoke(cli, ["model", "table"], catch_exceptions=False)
    assert "0.05312" in done.output
    assert len(done.output.splitlines()) == 17


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table", "--device", "h1000"], "--device: unknown device 'h1000'; the known devices: h100-sxm"),
        (["sweep", "--device", ""], "--device: unknown device ''"),
        (["sweep", "--speculation", ""], "--speculation: unknown speculation preset ''"),
        (["table", "--gamma", "0"], "--gamma: found 0; must be greater than or equal to 1"),
        (["table", "--alpha", "1.5"], "--alpha: found 1.5; must be less than or equal to 1"),
        (["table", "--alpha", "nan"], "--alpha: found nan; give a finite number"),
        (["table", "--batch", "512", "--context", "2048"], "at 2,048 tokens each, 200 rows fit"),
        (["table", "--batch", "many"], "--batch: found 'many'; give whole numbers"),
        (["table", "--batch", "0"], "--batch: found '0'"),
        (["table", "--gpus", "3"], "choose gpus that divide both, not 3"),
        (["table", "--target", "llama-9"], "--target: found 'llama-9'; choose one of"),
        (["saturation", "--rate", "-1"], "--rate: found '-1'; give numbers above 0"),
        (["saturation", "--cut-off", "0"], "--cut-off: found 0"),
        (["sweep", "--cut-off", "64"], "--cut-off: found 64, and none of baseline, mtp, draft-1b has one; add mtp-cut"),
        (["animation", "--variant", "on"], "--variant: unknown variant 'on'; there are off"),
        (["sweep", "--workload", "chess"], "--workload: unknown workload 'chess'"),
        (["sweep", "--speculation", "medusa"], "--speculation: unknown speculation preset 'medusa'"),
        (["sweep", "--device", "a100-40gb", "--workload", "chat"], "4 x a100-40gb"),
        (["charges", "--device", "h1000"], "--device: unknown device 'h1000'"),
        (["capacity", "--workload", "chess"], "--workload: unknown workload 'chess'"),
    ],
)
def test_bad_input_says_what_would_do(arguments: list[str], message: str) -> None:
    with pytest.raises(UserError) as error:
        RUNNER.invoke(cli, ["model", *arguments], catch_exceptions=False)
    assert message in str(error.value)


def test_bad_input_ends_in_one_line_and_code_2() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "speclab.cli", "model", "table", "--gamma", "0"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "speclab: --gamma: found 0; must be greater than or equal to 1\n"
