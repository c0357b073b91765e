"""Trials of a head: changes to its recipe, each on its own and for a short time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from speclab.config import Chosen, read_yaml, validated
from speclab.drafters import recipe as recipes
from speclab.drafters.recipe import Recipe, Some
from speclab.errors import UserError
from speclab.lab import Name

UNCHANGED = "unchanged"
"""The trial that the others are compared with."""


class RecipeChange(Chosen):
    """What one trial does differently."""

    seed: Any = None
    """Seed of the head and of the order of its batches; the corpus stays."""
    head: dict[str, Any] = {}
    """Keys of `recipe.HeadRecipe`."""


class Trials(Chosen):
    """A set of trials."""

    steps: Some
    """Steps of each training whose change does not set its own."""
    changes: dict[Name, RecipeChange]


def kept() -> Path:
    """Return the file of trials beside the kept recipe."""
    return recipes.kept().parent / "trials.yml"


def load(file: Path, base: Recipe) -> dict[str, Recipe]:
    """Return the recipe of each trial of a file, the unchanged one first.

    Parameters
    ----------
    file : Path
        A YAML file of `Trials`.
    base : Recipe
        The recipe that they change.

    Raises
    ------
    UserError
        The file is missing or holds a mistake; the key names the trial.
    """
    trials = validated(Trials, read_yaml(file), file)
    if UNCHANGED in trials.changes:
        raise UserError("is the name of the trial without changes", "choose another name", file=file,
                        key=f"changes.{UNCHANGED}")  # fmt: skip
    changes = {UNCHANGED: RecipeChange(), **trials.changes}
    return {name: _changed(base, trials.steps, name, change, file) for name, change in changes.items()}


def _changed(base: Recipe, steps: int, name: str, change: RecipeChange, file: Path) -> Recipe:
    recipe = base.model_dump()
    recipe["head"] |= {"steps": steps, **change.head}
    if change.seed is not None:
        recipe["seed"] = change.seed
    with mistakes_of(name, file):
        return validated(Recipe, recipe)


@contextmanager
def mistakes_of(name: str, file: Path) -> Iterator[None]:
    """Point a mistake in one trial to the place where its author wrote it."""
    try:
        yield
    except UserError as error:
        raise UserError(error.problem, error.remedy, file=file, key=f"changes.{name}.{error.key}") from None


def described(recipe: Recipe, unchanged: Recipe) -> str:
    """Return what a trial changes, by the recipe's keys."""
    base_values = {"seed": unchanged.seed, **unchanged.head.model_dump(mode="json")}
    values = {"seed": recipe.seed, **recipe.head.model_dump(mode="json")}
    return ", ".join(f"{key} {value}" for key, value in values.items() if value != base_values[key])
