"""Trials of a tiny head, trained by worker processes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest

pytest.importorskip("torch", reason="the extra drafters is not installed here")

from speclab.drafters import head_training, trials, trying
from speclab.drafters.recipe import Recipe
from speclab.errors import UserError


def test_trials_are_trainings_and_their_table_compares_them(
    recipe: Recipe, work: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "trials.yml"
    file.write_text("steps: 6\nchanges:\n  longer: {head: {steps: 9}}\n", encoding="utf-8")
    asked = trials.load(file, recipe)
    trying.run(asked, work, workers=2, say=print)
    printed = capfd.readouterr().out
    assert "unchanged: step 6:" in printed
    assert "longer: step 9:" in printed
    assert sorted(file.name for file in (work / "trials" / "longer" / "eagle3").iterdir()) == [
        "config.json", "model.safetensors",
    ]  # fmt: skip
    found = trying.table(asked, work)
    assert found["trial"].tolist() == ["unchanged", "longer"]
    assert found["steps"].tolist() == [6, 9]
    assert found["change"].tolist() == ["", "steps 9"]
    lengths = found["length"]
    assert found["gain"].tolist() == [0.0, pytest.approx(lengths[1] / lengths[0] - 1)]
    assert found["source"].str.fullmatch(r"measured \(PyTorch .*-cores?\)").all()
    head_training.run(asked["longer"], work / "corpus", tmp_path / "alone", lambda line: None)
    alone = pd.read_csv(tmp_path / "alone" / "log.csv").iloc[-1]
    assert alone["length"] == pytest.approx(lengths[1], rel=1e-3), "one of the trials is a training like another"

    further = asked["longer"].model_copy(update={"head": asked["longer"].head.model_copy(update={"start": "a head"})})
    shutil.copytree(work / "trials" / "longer", work / "trials" / "further")
    assert trying.table(asked | {"further": further}, work)["gain"].isna().tolist() == [False, False, True]

    trying.run(asked, work, workers=1, say=print)
    assert "step 6:" not in capfd.readouterr().out, "what is whole is not trained again"
    pd.testing.assert_frame_equal(trying.table(asked, work), found)

    file.write_text("steps: 7\nchanges: {}\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"trials/unchanged/recipe.json: was begun by another recipe"):
        trying.run(trials.load(file, recipe), work, workers=1, say=print)
