"""A user's mistake is one sentence and exit code 2, before any work."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from speclab import cli
from speclab.drafters import checks, measure
from speclab.drafters.recipe import Recipe


def said(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr(sys, "argv", ["speclab", "drafter", *arguments])
    monkeypatch.setattr(checks, "PACKAGES", ("pydantic",))
    with pytest.raises(SystemExit) as ended:
        cli.app()
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert "Traceback" not in error
    return " ".join(error.split())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["train", "--target", "no/such/folder"],
            "--target: no folder no/such/folder; give the folder of a Llama-type",
        ),
        (["corpus", "--recipe", "no.yml"], "no.yml: no such file"),
        (["measure", "no/such/drafter"], "no drafter in"),
        (["measure", "--trial", "longest"], "--trial: no trial 'longest'; there are: unchanged, other-seed,"),
    ],
)
def test_what_is_not_there_is_named(
    arguments: list[str], expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert expected in said(arguments, monkeypatch, capsys)


def test_a_folder_without_a_model_is_named_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work = tmp_path / "work"
    arguments = ["train", "--target", str(tmp_path), "--folder", str(work)]
    assert f"target: no model in {tmp_path}; give the folder of a model" in said(arguments, monkeypatch, capsys)
    assert not work.exists()


def test_the_target_that_a_command_makes_is_named_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "recipe.yml"
    recipe.write_text(f"name: a\ntarget: {tmp_path}/smollm2-135m-instruct\n", encoding="utf-8")
    assert "make it: speclab weights smollm2" in said(["corpus", "--recipe", str(recipe)], monkeypatch, capsys)


def test_a_drafter_is_measured_by_three_sets_that_share_nothing(tmp_path: Path) -> None:
    (tmp_path / "held_out.jsonl").write_text('{"kind": "question", "text": "What is a fjord?"}\n', encoding="utf-8")
    sets = measure.sets(Recipe(name="a", target="b"), tmp_path)
    assert {name: len(prompts) for name, prompts in sets.items()} == {
        "held out": 1, "fresh questions": 20, "HumanEval stubs": 20,
    }  # fmt: skip
    assert len({prompt.text for prompts in sets.values() for prompt in prompts}) == 41
    assert list(measure.sets(Recipe(name="a", target="b"), tmp_path / "none")) == ["fresh questions", "HumanEval stubs"]
