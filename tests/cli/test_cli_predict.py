from __future__ import annotations

import json
from functools import cache
from typing import Any, get_args

import pytest
import typer.main
from command_line import speclab
from typer.testing import CliRunner

from speclab.cli import cli
from speclab.predict.query import Method

ISSUE = ["--device", "h100", "--model", "llama-3.1-8b", "--k", "3", "--drafting-ms", "0.37", "--context", "500"]


def test_predict_prints_one_object() -> None:
    done = speclab("predict", *ISSUE, "--acceptance", ".63,.38,.25", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["concurrency"][0] == 1
    assert 1.8 < found["speed_up"][0] < 2.26
    assert found["status"] == "ok"
    assert {each["method"] for each in found["stated_error"]} == {"EAGLE-3"}


def test_predict_names_the_option_that_is_wrong() -> None:
    done = speclab("predict", *ISSUE, "--acceptance", ".63,.7,.25")
    assert done.returncode == 2
    assert done.stderr.startswith(
        "speclab: --acceptance: found 0.63,0.7,0.25, which rises at position 1; give marginal"
    )
    assert "Traceback" not in done.stderr


def test_validate_prints_a_list_of_errors() -> None:
    done = speclab("validate", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert {
        "source", "model", "device", "method", "k", "dataset", "n", "mean_abs_error", "worst_error", "worst_cell",
        "fitted_on",
    } <= set(rows[0])  # fmt: skip
    assert {row["source"].split(",")[0] for row in rows} == {
        "arXiv:2601.11580", "vllm-project/vllm#20780", "Lab 9 (report)", "lab cpu-smollm2",
    }  # fmt: skip


OTHER = {
    "--acceptance": ".5,.3,.2", "--k": "4", "--device": "a100", "--model": "smollm2-135m", "--method": "draft-model",
    "--drafter": "smollm2-135m", "--drafting-ms": "5", "--draft-rate": "0.3", "--context": "2000", "--prompt": "400",
    "--answer": "300", "--concurrency": "2,7", "--calibration": "sharegpt",
}  # fmt: skip
"""Another value of each option than the one that the question below has."""
WITH = {"--k": "--acceptance", "--prompt": "--answer", "--answer": "--prompt", "--model": "--drafter"}
"""Options that need another one."""
METHODS = get_args(Method)


@cache
def asked(method: str, *more: str) -> tuple[int, dict[str, Any] | str]:
    base = {"--acceptance": ".9,.85,.8", "--k": "3", "--concurrency": "1,64", "--method": method}
    given = base | dict(zip(more[::2], more[1::2], strict=True))
    done = CliRunner().invoke(cli, ["predict", *[word for pair in given.items() for word in pair], "--json"])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return 2, str(done.exception)
    return done.exit_code, json.loads(done.stdout)


def test_f10_the_table_below_has_every_option_of_predict() -> None:
    command = typer.main.get_command(cli).commands["predict"]  # type: ignore[attr-defined]
    assert {option.opts[0] for option in command.params} == {*OTHER, "--json"}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("option", OTHER)
def test_f10_no_option_is_ignored(option: str, method: str) -> None:
    value = OTHER[option] if (option, method) != ("--method", "draft-model") else "ngram"
    before, after = asked(method), asked(method, option, value)
    assert before[0] == 0
    if after[0] == 0:
        numbers = [{key: each[key] for key in ("concurrency", "speed_up", "step_s")} for each in (before[1], after[1])]
        assert numbers[0] != numbers[1]
    else:
        assert {option, WITH.get(option, option)} & set(str(after[1]).split(":")), "it names what is wrong or missing"


@pytest.mark.parametrize(("option", "value"), [("--drafting-ms", "5"), ("--drafter", "llama-3.2-1b")])
def test_f10_a_drafter_of_n_gram_is_refused(option: str, value: str) -> None:
    code, said = asked("ngram", "--draft-rate", ".3", option, value)
    assert code == 2
    assert f"{option}: found {value}, and n-gram has no network that drafts; leave it out" in str(said)


def test_f10_a_context_beside_the_lengths_that_make_one_is_refused() -> None:
    code, said = asked("eagle3", "--prompt", "400", "--answer", "200", "--context", "500")
    assert code == 2
    assert "--context: found 500, and a context follows from --prompt and --answer" in str(said)


@pytest.mark.parametrize("device", ["h100", "cpu"])
def test_f10_a_device_for_the_calibration_of_a_machine_is_refused(device: str) -> None:
    code, said = asked("eagle3", "--calibration", "cpu-smollm2", "--device", device)
    assert code == 2
    assert f"--device: found '{device}'" in str(said)


def test_f11_far_from_what_was_fitted_the_interval_is_wide_and_says_so() -> None:
    far = ["--acceptance", ".72,.5,.35,.25,.17,.12", "--k", "6", "--concurrency", "1"]
    (near_code, near), (far_code, there) = asked("eagle3", *far), asked("eagle3", *far, "--context", "100000")
    assert (near_code, far_code) == (0, 0)
    assert isinstance(near, dict)
    assert isinstance(there, dict)
    widths = [each["speed_up_high"][0] / each["speed_up_low"][0] for each in (near, there)]
    assert widths[0] < 1.1
    assert widths[1] > 2
    assert not any("doublings" in warning for warning in near["warnings"])
    assert any("doublings from what was fitted: the interval is wider by" in warning for warning in there["warnings"])
