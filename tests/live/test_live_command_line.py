"""Every arm's exact command line before the installed vLLM's own argument parser; no model is loaded."""

from __future__ import annotations

import importlib.util

import pytest

from speclab import lab as labs
from speclab.engines import vllm
from speclab.engines.vllm_flags import Parsed, parsed
from speclab.lab import Arm, Lab

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        importlib.util.find_spec("vllm") is None, reason="vLLM is not installed here (pip install -e '.[cpu,test]')"
    ),
]

ARMS: list[tuple[Lab, Arm]] = [(lab, lab.arm(name)) for lab in map(labs.load, labs.names()) for name in lab.arms]


@pytest.fixture(scope="module")
def as_vllm_reads() -> list[Parsed]:
    return parsed([vllm.command(lab, arm, 8123) for lab, arm in ARMS])


@pytest.mark.parametrize("index", range(len(ARMS)), ids=[f"{lab.name}-{arm.arm}" for lab, arm in ARMS])
def test_vllm_takes_every_flag_and_reads_the_value_that_the_lab_gives(as_vllm_reads: list[Parsed], index: int) -> None:
    lab, arm = ARMS[index]
    read = as_vllm_reads[index]
    assert read.error is None
    given = {name.replace("-", "_"): value for name, value in lab.server_flags(arm).items()}
    plain = {name: value for name, value in given.items() if not isinstance(value, dict)}
    assert {name: read.values.get(name) for name in plain} == plain
    speculation = arm.speculation.model_dump(mode="json", exclude_none=True) if arm.speculation else None
    assert read.values["speculative_config"] == speculation
    assert (read.values["model"], read.values["port"]) == (lab.target.model, 8123)


def test_a_mistaken_flag_is_refused_with_the_parsers_own_words() -> None:
    command = [*vllm.command(*ARMS[0], 8123)]
    no_flag, no_list = parsed([[*command, "--no-such-flag", "1"], [*command, "--cudagraph-capture-sizes", "[1, 2]"]])
    assert no_flag.error is not None
    assert "--no-such-flag" in no_flag.error
    assert no_list.error is not None
    assert "invalid int value: '[1, 2]'" in no_list.error
