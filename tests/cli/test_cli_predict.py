from __future__ import annotations

import json

from command_line import speclab

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
