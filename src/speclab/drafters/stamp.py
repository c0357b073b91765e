"""Check whether the work in a folder was begun with the same recipe."""

from __future__ import annotations

import json
from pathlib import Path

from speclab import paths, whole
from speclab.drafters.recipe import Part, Recipe
from speclab.errors import UserError

FILE = "recipe.json"


def hold(recipe: Recipe, folder: Path, part: Part | None = None) -> None:
    """Note in a folder the recipe it is made with, or refuse if it was begun with another.

    Parameters
    ----------
    recipe : Recipe
        The current recipe.
    folder : Path
        Of a corpus, or of the training of one part.
    part : {'head', 'draft-model'}, optional
        Which training; by default a corpus.

    Raises
    ------
    UserError
        Work there was begun with other numbers: going on would mix the two.
    """
    stamped = {"target": recipe.target, "seed": recipe.seed, "corpus": recipe.corpus.model_dump(mode="json")}
    if part is not None:
        of_part = recipe.head if part == "head" else recipe.draft_model
        stamped[part] = of_part.model_dump(mode="json")
    file = folder / FILE
    if not file.exists():
        whole.write(file, json.dumps(stamped, indent=1, sort_keys=True) + "\n", "the recipe of this work")
        return
    written = json.loads(file.read_text(encoding="utf-8"))
    if written != json.loads(json.dumps(stamped)):
        changed = sorted(
            key for key in {*written, *stamped} if written.get(key) != json.loads(json.dumps(stamped.get(key)))
        )
        raise UserError(f"was begun by another recipe (other {', '.join(changed)})",
                        f"give --folder, or move {paths.shown(folder)} away", file=file)  # fmt: skip


def same_target(recipe: Recipe, corpus: Path) -> None:
    """Refuse a corpus that does not exist, or that another target wrote.

    Raises
    ------
    UserError
        The corpus is missing, or another target's.
    """
    file = corpus / FILE
    if not file.exists():
        raise UserError(f"no corpus in {paths.shown(corpus)}", "write it first: speclab drafter corpus --recipe FILE",
                        key="head.beside")  # fmt: skip
    written = json.loads(file.read_text(encoding="utf-8"))
    if written["target"] != recipe.target:
        raise UserError(f"was written by {written['target']}, not by {recipe.target}",
                        "give a corpus of the same target", file=file, key="head.beside")  # fmt: skip
