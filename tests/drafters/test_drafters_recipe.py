from __future__ import annotations

from pathlib import Path

import pytest

from speclab.drafters import recipe as recipes
from speclab.drafters import stamp
from speclab.drafters.recipe import HeadRecipe, Recipe
from speclab.errors import UserError


def test_the_kept_recipe_is_valid_and_names_the_labs_target() -> None:
    kept = recipes.load(recipes.kept())
    assert (kept.name, kept.target) == ("smollm2-135m", "models/smollm2-135m-instruct")


def test_half_the_time_is_half_the_corpus_and_half_the_steps() -> None:
    whole = Recipe(name="a", target="b")
    half = whole.scaled(0.5)
    assert half.corpus.sampled_questions == whole.corpus.sampled_questions // 2
    assert (half.head.steps, half.draft_model.steps) == (whole.head.steps // 2, whole.draft_model.steps // 2)
    assert half.corpus.held_out == whole.corpus.held_out
    assert half.head.model_copy(update={"steps": whole.head.steps}) == whole.head


def test_work_goes_on_by_its_own_recipe_alone(tmp_path: Path) -> None:
    recipe = Recipe(name="a", target="b")
    for _ in range(2):
        stamp.hold(recipe, tmp_path / "corpus")
        stamp.hold(recipe, tmp_path / "head", "head")
    longer = recipe.model_copy(update={"head": HeadRecipe(steps=9)})
    stamp.hold(longer, tmp_path / "corpus")  # the corpus does not ask how a head is trained
    with pytest.raises(UserError, match=r"recipe.json: was begun by another recipe \(other head\); give --folder"):
        stamp.hold(longer, tmp_path / "head", "head")
    with pytest.raises(UserError, match=r"other corpus"):
        stamp.hold(recipe.scaled(2), tmp_path / "corpus")


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ("head: {step: 3}", "head.step: unknown key 'step' (value 3); did you mean 'steps'?"),
        ("corpus: {rows: 0}", "corpus.rows: found 0"),
        ("seed: -1", "seed: found -1"),
    ],
)
def test_a_mistake_is_one_line_with_its_key(tmp_path: Path, wrong: str, expected: str) -> None:
    file = tmp_path / "recipe.yml"
    file.write_text(f"name: a\ntarget: b\n{wrong}\n", encoding="utf-8")
    with pytest.raises(UserError) as caught:
        recipes.load(file)
    assert expected in str(caught.value)
