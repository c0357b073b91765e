"""The list of CUDA graphs that the doctor works out, beside the one that the installed vLLM makes of the same flags."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import pytest

from speclab.doctor.graphs import own_sizes, rounded

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        importlib.util.find_spec("vllm") is None, reason="vLLM is not installed here (pip install -e '.[cpu,test]')"
    ),
]

_ASK = """
import json, sys
from types import SimpleNamespace
from unittest.mock import MagicMock
from vllm.config import CompilationConfig, CUDAGraphMode
from vllm.config.vllm import VllmConfig
answers = []
for seats, ranges, k, batched, largest, mode in json.load(sys.stdin):
    compilation = CompilationConfig(cudagraph_mode=CUDAGraphMode.FULL_AND_PIECEWISE, max_cudagraph_capture_size=largest)
    compilation.post_init_cudagraph_sizes = lambda: None
    speculation = SimpleNamespace(num_speculative_tokens_per_batch_size=ranges,
                                  uses_dynamic_speculative_decoding=lambda: ranges is not None)
    config = SimpleNamespace(
        model_config=SimpleNamespace(enforce_eager=False), compilation_config=compilation, performance_mode=mode,
        scheduler_config=SimpleNamespace(max_num_seqs=seats, max_num_batched_tokens=batched),
        speculative_config=speculation, num_speculative_tokens=k, uniform_decode_query_len=1 + k)
    VllmConfig._set_cudagraph_sizes(config)
    sizes = list(compilation.cudagraph_capture_sizes)
    if k and sizes[-1] > k:  # else vLLM ends
        compilation.adjust_cudagraph_sizes_for_spec_decode(1 + k)
    answers.append([sizes, list(compilation.cudagraph_capture_sizes)])
print("ANSWERS" + json.dumps(answers))
"""

SCHEDULE = [[1, 8, 5], [9, 40, 2], [41, 64, 0]]
CASES = [
    *((seats, None, k, 8192, None, None) for seats in (1, 6, 16, 100, 256, 1024) for k in (0, 1, 3, 6, 8)),
    *((6, None, 6, 8192, largest, None) for largest in (4, 7, 42, 84, 300)),
    *((64, None, 3, batched, None, None) for batched in (30, 250, 500)),
    (64, SCHEDULE, 5, 8192, None, None),
    (32, None, 3, 8192, None, "interactivity"),
]  # fmt: skip
"""Seats, schedule, k, batched tokens, largest size, performance mode."""


def test_f9_vllm_makes_the_list_that_the_doctor_works_out() -> None:
    done = subprocess.run([sys.executable, "-c", _ASK], input=json.dumps(CASES), capture_output=True, text=True,
                          check=True)  # fmt: skip
    answers = json.loads(done.stdout.rsplit("ANSWERS", 1)[-1])
    for (seats, ranges, k, batched, largest, mode), (theirs, on_v1) in zip(CASES, answers, strict=True):
        k_at = [next(each for first, last, each in ranges or [[1, seats, k]] if first <= n <= last)
                for n in range(1, seats + 1)]  # fmt: skip
        ours = own_sizes(seats, k_at, batched, largest, mode == "interactivity")
        assert ours == theirs, (seats, ranges, k, batched, largest, mode)
        if k and ours[-1] > k:
            assert (rounded(ours, 1 + k, ours[-1]) or [1 + k]) == on_v1, (seats, k, largest)
