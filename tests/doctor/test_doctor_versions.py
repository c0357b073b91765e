from __future__ import annotations

import pytest
from doctor_cases import level, only

from speclab.doctor import versions

CPU = {"vllm_build": "cpu", "gpus": ()}


@pytest.mark.parametrize(("text", "expected"), [("0.32.0+cpu", (0, 32, 0)), ("0.13.0rc1", (0, 13, 0)), ("dev", ())])
def test_the_leading_numbers_of_a_version(text, expected) -> None:
    assert versions.numbers(text) == expected


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        ({}, "fine"),
        ({"vllm": None, "vllm_build": None}, "will fail"),
        ({"gpus": ()}, "will fail"),
        ({"vllm_build": "cpu"}, "will mislead"),
        (CPU, "fine"),
    ],
)
def test_vllm_is_here_and_was_built_for_this_machine(case, machine, expected) -> None:
    assert level(versions.installed(case(**machine))) == expected


@pytest.mark.parametrize(
    ("method", "version", "expected"),
    [
        ("draft_model", "0.9.2", "fine"),  # vllm#22047 ran it with both
        ("draft_model", "0.10.0", "will fail"),
        ("draft_model", "0.13.0", "will fail"),  # the version of vllm#31883
        ("draft_model", "0.14.1", "will fail"),
        ("draft_model", "0.15.0", "fine"),
        ("ngram", "0.13.0", "fine"),
        ("eagle3", "0.13.0", "fine"),
        ("eagle3", "0.8.4", "will fail"),
        ("ngram", None, "not known here"),
    ],
)
def test_the_version_knows_the_method(case, method, version, expected) -> None:
    assert level(versions.method(case(method, vllm=version))) == expected


def test_the_baseline_needs_no_method(case) -> None:
    assert versions.method(case()) == []
    assert versions.runner(case()) == []


def test_synthetic_acceptance_on_a_cpu_needs_the_plugin(case) -> None:
    made = case("eagle3", **CPU)
    forced = made.arm.speculation.model_copy(
        update={"rejection_sample_method": "synthetic", "synthetic_acceptance_rates": (0.7, 0.5, 0.3)}
    )
    arm = made.arm.model_copy(update={"speculation": forced})
    for has_plugin, expected in ((False, "will fail"), (True, "fine")):
        machine = made.machine.model_copy(update={"synthetic_on_cpu": has_plugin})
        assert level(versions.method(type(made)(made.lab, arm, made.baseline, machine))) == expected


@pytest.mark.parametrize(
    ("version", "variable", "expected"),
    [
        ("0.31.0", "1", "will fail"),
        ("0.31.0", None, "will mislead"),
        ("0.31.0", "0", "fine"),
        ("0.32.0", None, "fine"),
        ("0.32.0", "1", "fine"),
        (None, None, "not known here"),
        (None, "0", "fine"),
    ],
)
@pytest.mark.parametrize("method", ["ngram", "draft_model"])
def test_the_model_runner(case, method, version, variable, expected) -> None:
    environment = {"VLLM_USE_V2_MODEL_RUNNER": variable} if variable else {}
    assert level(versions.runner(case(method, vllm=version, environment=environment))) == expected


def test_the_labs_variable_goes_before_this_processs(case) -> None:
    name = "VLLM_USE_V2_MODEL_RUNNER"
    made = case("ngram", vllm="0.31.0", environment={name: "0"}, variables={name: "1"})
    assert level(versions.runner(made)) == "fine"


def test_flags_that_the_parser_refuses(case) -> None:
    assert level(versions.accepted(case())) == "not known here"
    assert level(versions.accepted(case(refused={"baseline": None}))) == "fine"
    found = only(versions.accepted(case(refused={"baseline": "unrecognized arguments: --no-such-flag"})))
    assert (found.level, found.found) == ("will fail", "unrecognized arguments: --no-such-flag")
