"""A tiny random target, a recipe for it, and a corpus that it wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from speclab.drafters.recipe import CorpusRecipe, DraftModelRecipe, HeadRecipe, Recipe
from speclab.engines import weights


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return weights.tiny(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def recipe(target: Path) -> Recipe:
    return Recipe(
        name="tiny",
        target=str(target),
        corpus=CorpusRecipe(
            sampled_questions=8, sampled_stubs=0, templated_questions=24, library_functions=0, held_out=4,
            prompt_tokens=200, answer_tokens=12, rows=10,
        ),
        head=HeadRecipe(draft_vocabulary=96, steps=12, batch_tokens=512, unrolled=2, single_share=0.5),
        draft_model=DraftModelRecipe(layers=(0, 1), steps=4, batch_tokens=512),
    )  # fmt: skip


@pytest.fixture(scope="session")
def work(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch

    from speclab.drafters import corpus

    torch.set_num_threads(1)  # so small a network's threads would only wait for each other
    folder = tmp_path_factory.mktemp("work")
    said: list[str] = []
    corpus.make(recipe, folder / "corpus", workers=1, say=said.append)
    assert "3 of 3" in said[-1]
    return folder
