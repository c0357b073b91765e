from __future__ import annotations

import sys
from pathlib import Path

import pytest

from speclab.engines import weights
from speclab.errors import UserError


@pytest.mark.parametrize("make", [weights.tiny, weights.smollm2])
def test_without_the_extra_it_is_one_line_and_leaves_nothing(
    make: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UserError, match=r"package torch is not installed; .*pip install -e '\.\[cpu\]'"):
        make(tmp_path / "models" / "m")  # type: ignore[operator]
    assert list((tmp_path / "models").iterdir()) == []


@pytest.mark.parametrize("make", [weights.tiny, weights.smollm2])
def test_a_model_that_is_there_is_left_alone(make: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    assert make(tmp_path) == tmp_path  # type: ignore[operator]
    assert [file.name for file in tmp_path.iterdir()] == ["config.json"]


def test_a_head_needs_its_target_first(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no target model in .*; make it first: speclab weights smollm2"):
        weights.eagle3_random(tmp_path / "head", target=tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


def test_a_draft_model_needs_its_target_and_its_layers_first(tmp_path: Path) -> None:
    target, kept = tmp_path / "target", tmp_path / "kept"
    with pytest.raises(UserError, match=r"no target model in .*; make it first: speclab weights smollm2"):
        weights.draft_model(tmp_path / "draft", target, kept)
    target.mkdir()
    (target / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(UserError, match=r"no layers of a draft model in .*kept; train them: speclab drafter train"):
        weights.draft_model(tmp_path / "draft", target, kept)
    assert list(tmp_path.iterdir()) == [target]


def test_a_head_without_the_extra_is_one_line_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    target = tmp_path / "target"
    target.mkdir()
    (target / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(UserError, match="package torch is not installed"):
        weights.eagle3_random(tmp_path / "head", target)
    assert list(tmp_path.iterdir()) == [target]
