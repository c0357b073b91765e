"""Every arm's exact command line before the installed vLLM's own argument parser; no model is loaded."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from typing import Any

import pytest

from speclab import lab as labs
from speclab.engines import vllm
from speclab.engines.vllm_flags import OTHER_NAMES, Parsed, normalised, of, parsed, words
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
    given = {name.replace("-", "_"): value for name, value in of(lab, arm).items()}
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


FORMS: list[tuple[list[str], dict[str, Any]]] = [
    (["--max_num_seqs", "6"], {"max_num_seqs": 6}),
    (["--max-num-seqs=6"], {"--max-num-seqs=6": True}),
    (["-tp", "2"], {"tp": 2}),
    (["-pp=2"], {"-pp": "2"}),
    (["-ep"], {"ep": True}),
    (["-O3"], {"O3": True}),
    (["-O", "1"], {"O": 1}),
    (["-O=0"], {"-O=0": True}),
    (["--no-enable-prefix-caching"], {"no_enable_prefix_caching": True}),
    (["--no-async-scheduling"], {"async-scheduling": False}),
    (["--device-memory-utilization", "0.8"], {"device-memory-utilization": "0.8"}),
    (["--max-model-len", "8k"], {"max-model-len": "8k"}),
    (["--max-num-batched-tokens", "2K"], {"max-num-batched-tokens": "2K"}),
    (["--kv-cache-memory-bytes", "1.5g"], {"kv-cache-memory-bytes": "1.5g"}),
    (["--cudagraph-capture-sizes", "1", "2", "4"], {"cudagraph_capture_sizes": [1, 2, 4]}),
    (["--cudagraph-capture-sizes", "8"], {"cudagraph-capture-sizes": 8}),
    (["--compilation-config", '{"max_cudagraph_capture_size": 42}'],
     {"compilation_config": '{"max_cudagraph_capture_size": 42}'}),
    (["--compilation-config", '{"max_cudagraph_capture_size": 1k}'],
     {"compilation-config": '{"max_cudagraph_capture_size": 1k}'}),
    (["-cc", '{"max_cudagraph_capture_size": 42}'], {"cc": {"max_cudagraph_capture_size": 42}}),
    (["--compilation_config.max_cudagraph_capture_size", "42"],
     {"compilation-config.max_cudagraph_capture_size": 42}),
    (["--compilation-config.max_cudagraph_capture_size=42"], {"cc.max_cudagraph_capture_size": "42"}),
    (["-cc.mode", "3", "-cc.cudagraph_mode=full"], {"-cc.mode": 3, "-cc.cudagraph_mode": "full"}),
    (["-cc.pass_config.fuse_norm_quant", "true"], {"cc.pass_config.fuse_norm_quant": "true"}),
    (["-cc.custom_ops+", "none,+quant_fp8"], {"cc.custom_ops+": "none,+quant_fp8"}),
    (["--hf-overrides", '{"a": {"b": 1}}'], {"hf_overrides": {"a": {"b": 1}}}),
    (["--hf-overrides.a.b", "1"], {"hf-overrides.a.b": 1}),
]  # fmt: skip
"""What a person types, and the same in a lab."""


def test_f9_every_form_of_a_flag_is_read_as_vllm_reads_it() -> None:
    start = ["python", "-m", "module", "--model", "m"]
    typed, ours = [
        parsed([[*start, *line] for line in lines])
        for lines in ([words for words, _ in FORMS], [words(normalised(lab)) for _, lab in FORMS])
    ]
    bare = parsed([start])[0]
    assert bare.error is None
    for (line, _), theirs, mine in zip(FORMS, typed, ours, strict=True):
        assert theirs.error is None, line
        assert mine.values == theirs.values, line
        assert theirs.values != bare.values, f"{line} changes something"


def test_f9_the_short_names_are_the_parsers_own() -> None:
    done = subprocess.run([sys.executable, "-c", _NAMES], capture_output=True, text=True, check=True)
    names = json.loads(done.stdout.rsplit("NAMES", 1)[-1])
    # -O is taken out of the words before there are options
    assert names == {short: long for short, long in OTHER_NAMES.items() if short != "O"} | {"h": "help"}


_NAMES = """
import json
from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser
names = {}
for action in make_arg_parser(FlexibleArgumentParser())._actions:
    long, *others = sorted(
        (each.lstrip("-") for each in action.option_strings if not each.startswith("--no-")),
        key=lambda each: each.replace("-", "_") != action.dest,
    ) or [action.dest]
    names |= {other: long for other in others}
print("NAMES" + json.dumps(names))
"""
