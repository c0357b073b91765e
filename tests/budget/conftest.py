"""A lab of a few short cells, simulated three times over."""

from __future__ import annotations

from pathlib import Path

import pytest

from speclab import results
from speclab.run import run_arm

LAB = """
title: Small
question: What would an hour more buy?
target: {model: meta-llama/Llama-3.1-8B-Instruct, tokens: llama-3.1}
arms: [baseline, eagle3-k3]
workloads: [chat]
concurrencies: [1, 8]
repeats: 3
phases: {length_s: 8, drop_first_s: 1, drop_last_s: 1}
sampling: {max_tokens: 64, seed: 9}
simulated:
  device: h100-sxm
  shape: llama-3-8b
  answers: {chat: {mean_tokens: 40, cv: 0.3}}
"""
EAGLE = """
lab: small
arm: eagle3-k3
label: EAGLE-3
speculation: {method: eagle3, model: a/head, num_speculative_tokens: 3}
simulated:
  shape: eagle3-head-8b
  floor_ms_per_position: 0.37
  acceptance: {chat: [0.7, 0.5, 0.4]}
"""


@pytest.fixture(scope="session")
def small_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkout with one lab that has been run."""
    root = tmp_path_factory.mktemp("planned")
    folder = root / "labs" / "small"
    folder.mkdir(parents=True)
    (folder / "lab.yml").write_text(LAB)
    (folder / "baseline.yml").write_text("lab: small\narm: baseline\nlabel: Baseline\n")
    (folder / "eagle3-k3.yml").write_text(EAGLE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPECLAB_ROOT", str(root))
        for arm in ("baseline", "eagle3-k3"):
            run_arm("small", arm)
    return root


@pytest.fixture
def small_results(small_root: Path, monkeypatch: pytest.MonkeyPatch) -> results.Results:
    """Return its results, in its checkout."""
    monkeypatch.setenv("SPECLAB_ROOT", str(small_root))
    return results.of("small")
