"""Whether work that lies in a folder was begun by the same recipe."""

from __future__ import annotations

import json
from pathlib import Path

from speclab import paths, whole
from speclab.drafters.recipe import Part, Recipe
from speclab.errors import UserError

FILE = "recipe.json"


def hold(recipe: Recipe, folder: Path, part: Part | None = None) -> None:
    """Note in a folder which recipe it is worked on by, or find that it was begun by another.

    Parameters
    ----------
    recipe : Recipe
        Now.
    folder : Path
        Of a corpus, or of the training of one part.
    part : {'head', 'draft-model'}, optional
        Which training; a corpus where not given.

    Raises
    ------
    UserError
        Work there was begun with other numbers: going on would mix the two.
    """
    told = {"target": recipe.target, "seed": recipe.seed, "corpus": recipe.corpus.model_dump(mode="json")}
    if part is not None:
        of_part = recipe.head if part == "head" else recipe.draft_model
        told[part] = of_part.model_dump(mode="json")
    file = folder / FILE
    if not file.exists():
        whole.write(file, json.dumps(told, indent=1, sort_keys=True) + "\n", "the recipe of this work")
        return
    before = json.loads(file.read_text(encoding="utf-8"))
    if before != json.loads(json.dumps(told)):
        changed = sorted(key for key in {*before, *told} if before.get(key) != json.loads(json.dumps(told.get(key))))
        raise UserError(f"was begun by another recipe (other {', '.join(changed)})",
                        f"give --folder, or move {paths.shown(folder)} away", file=file)  # fmt: skip


def same_target(recipe: Recipe, corpus: Path) -> None:
    """Find that a corpus is not there, or that another target wrote it.

    Raises
    ------
    UserError
        So it is.
    """
    file = corpus / FILE
    if not file.exists():
        raise UserError(f"no corpus in {paths.shown(corpus)}", "write it first: speclab drafter corpus --recipe FILE",
                        key="head.beside")  # fmt: skip
    before = json.loads(file.read_text(encoding="utf-8"))
    if before["target"] != recipe.target:
        raise UserError(f"was written by {before['target']}, not by {recipe.target}",
                        "give a corpus of the same target", file=file, key="head.beside")  # fmt: skip
