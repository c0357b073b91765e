"""What is tried on a head: each change alone, checked before any training."""

from __future__ import annotations

from pathlib import Path

import pytest

from speclab.drafters import recipe as recipes
from speclab.drafters import trials
from speclab.drafters.recipe import HeadRecipe, Recipe
from speclab.errors import UserError

BASE = Recipe(name="a", target="b", head=HeadRecipe(steps=2000, rate=2e-3))


def written(tmp_path: Path, changes: str) -> Path:
    file = tmp_path / "trials.yml"
    file.write_text(f"steps: 40\nchanges:\n{changes}\n", encoding="utf-8")
    return file


def test_each_trial_changes_one_thing_and_the_unchanged_one_nothing_but_the_steps(tmp_path: Path) -> None:
    file = written(tmp_path, "  wide: {head: {draft_vocabulary: 99}}\n  long: {head: {steps: 80}}\n  other: {seed: 4}")
    tried = trials.load(file, BASE)
    assert list(tried) == ["unchanged", "wide", "long", "other"]
    assert tried["unchanged"].head == BASE.head.model_copy(update={"steps": 40})
    assert all(recipe.corpus == BASE.corpus for recipe in tried.values())
    said = {name: trials.described(recipe, tried["unchanged"]) for name, recipe in tried.items()}
    assert said == {"unchanged": "", "wide": "draft_vocabulary 99", "long": "steps 80", "other": "seed 4"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ("  a: {head: {rat: 1}}", "changes.a.head.rat: unknown key 'rat' (value 1); did you mean 'rate'?"),
        ("  a: {seed: x}", "changes.a.seed: found 'x'"),
        ("  a: {corpus: {rows: 3}}", "changes.a.corpus: unknown key 'corpus'"),
        ("  unchanged: {seed: 3}", "changes.unchanged: is the name of the trial without changes; choose another name"),
        ("  a b: {}", "changes.a b"),
    ],
)
def test_a_mistake_is_one_line_with_the_trials_name(tmp_path: Path, changes: str, expected: str) -> None:
    with pytest.raises(UserError) as caught:
        trials.load(written(tmp_path, changes), BASE)
    assert expected in str(caught.value)


def test_what_was_tried_beside_the_kept_recipe_can_be_tried_again() -> None:
    tried = trials.load(trials.kept(), recipes.load(recipes.kept()))
    said = [trials.described(recipe, tried[trials.UNCHANGED]) for recipe in tried.values()]
    assert len(set(said)) == len(tried) > 5, "each trial is another one"
