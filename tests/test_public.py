"""The public interface: what `from speclab import …` gives, and that it does what the page about it says."""

from __future__ import annotations

from pathlib import Path

import pytest

import speclab
from speclab import UserError, predict_speed_up, read_results, run_arm


def test_every_public_name_is_there_and_nothing_else_is_promised() -> None:
    assert all(getattr(speclab, name) is not None for name in speclab.__all__)
    with pytest.raises(AttributeError, match="no attribute 'run_everything'"):
        _ = speclab.run_everything


def test_run_read_and_predict(tmp_path: Path) -> None:
    run = run_arm("lab09", "eagle3-k3", workloads=["chat"], concurrencies=[1], out=tmp_path)
    assert (run.ran, run.source) == (1, "simulated (h100-sxm)")
    crossover = read_results("lab09").value("crossover", arm="eagle3-k3", workload="chat")
    assert 128 < crossover < 256
    answered = predict_speed_up((0.63, 0.38, 0.25), drafting_ms=0.37)
    assert answered.prediction.speed_up[0] > 1
    with pytest.raises(UserError, match=r"found 'devise'; the fields of a question: answer, calibration, "):
        predict_speed_up((0.5,), devise="h100")
