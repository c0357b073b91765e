"""The schedules that `speclab advise` prints, before the installed vLLM: its parser, its own reading of the ranges."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import pytest

from speclab import lab as labs
from speclab.advice import serve
from speclab.engines.vllm_flags import parsed
from speclab.findings.schedule import KEY, Schedule, at

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        importlib.util.find_spec("vllm") is None, reason="vLLM is not installed here (pip install -e '.[cpu,test]')"
    ),
]

SCHEDULES: list[tuple[str, str, Schedule]] = [
    ("lab09", "eagle3-k3", [(1, 165, 3), (166, 256, 0)]),
    ("lab09", "ngram-k8", [(1, 32, 8), (33, 147, 2), (148, 256, 0)]),
    ("cpu-smollm2", "ngram-k2", [(1, 3, 0), (4, 16, 2)]),
]

_READ = """
import json, sys
from vllm.v1.spec_decode.dynamic.utils import build_dynamic_sd_schedule_lookup as build
print("READ" + json.dumps([build(ranges, largest, k) for ranges, largest, k in json.load(sys.stdin)]))
"""


def test_vllms_parser_takes_the_line_and_reads_the_schedule() -> None:
    commands = []
    for name, arm, ranges in SCHEDULES:
        lab = labs.load(name)
        words = serve.words(lab, lab.arm(arm), ranges)
        assert words[:2] == ["vllm", "serve"]
        # the parser behind `python -m ...api_server` has the model as an option
        commands.append(["python", "-m", "module", "--model", *words[2:]])
    for (_, _, ranges), read in zip(SCHEDULES, parsed(commands), strict=True):
        assert read.error is None
        assert read.values["speculative_config"][KEY] == [list(each) for each in ranges]


def test_vllm_takes_the_k_that_the_schedule_means_at_each_batch_size() -> None:
    asked = [(ranges, ranges[-1][1], max(k for _, _, k in ranges)) for _, _, ranges in SCHEDULES]
    done = subprocess.run([sys.executable, "-c", _READ], input=json.dumps(asked), capture_output=True, text=True,
                          check=True)  # fmt: skip
    tables = json.loads(done.stdout.rsplit("READ", 1)[-1])
    for (ranges, largest, _), by_size in zip(asked, tables, strict=True):
        assert by_size[1:] == [at(ranges, size) for size in range(1, largest + 1)]
        assert len(by_size) == largest + 1
