from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from speclab import cli
from speclab.cli.probe import probe
from speclab.errors import UserError
from speclab.probe import devices, record


def test_a_dry_run_says_what_would_be_timed_and_needs_no_torch(capsys: pytest.CaptureFixture[str]) -> None:
    probe("smollm2-135m", device="cpu", dry_run=True, json=True)
    rows = json.loads(capsys.readouterr().out)
    assert rows[0] == {
        "shape": "smollm2-135m", "layers": 30, "layers_of_model": 30, "timed": "always",
        "part": "step", "rows": 1, "positions": 1, "context": 256, "tokens": 1,
    }  # fmt: skip
    assert {row["timed"] for row in rows} >= {"always", "while there is time"}
    probe("smollm2-135m", device="cpu", dry_run=True)
    said = capsys.readouterr().out
    assert said.startswith("smollm2-135m in bfloat16 on cpu: 0.3 GB of weights, ")
    assert "1, 8, 64" in said


def test_a_mistake_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["speclab", "probe", "gpt-2"])
    with pytest.raises(SystemExit) as ended:
        cli.app()
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.startswith("speclab: unknown shape 'gpt-2'; the known shapes: ")
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_without_the_extra_it_is_one_sentence_and_leaves_nothing(
    device: devices.Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        UserError, match=r"package torch is not installed; install the extra: pip install -e '\.\[probe"
    ):
        probe("smollm2-135m", device=device, out=tmp_path / "new" / "record.json")
    assert list(tmp_path.iterdir()) == []


def test_a_gpu_that_is_not_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoGpu:
        class cuda:  # noqa: N801
            is_available = staticmethod(lambda: False)

    monkeypatch.setitem(sys.modules, "torch", NoGpu)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"--device: no CUDA device that PyTorch can use here; use --device cpu, or"):
        devices.chosen("cuda")
    assert devices.chosen(None) == "cpu"


def test_a_record_that_is_there_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECLAB_ROOT", str(tmp_path))
    file = record.file_of(tmp_path / "data" / "runs", devices.slug("cpu"), "smollm2-135m", "bfloat16")
    file.parent.mkdir(parents=True)
    file.write_text("kept", encoding="utf-8")
    with pytest.raises(UserError, match=r"bfloat16\.json: a record exists already; move it away, or .*--out"):
        probe("smollm2-135m", device="cpu")
    assert file.read_text(encoding="utf-8") == "kept"
