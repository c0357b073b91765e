"""From a recipe to a folder that vLLM serves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from speclab import paths, whole
from speclab.drafters import checkpoint, corpus, distill, head_training, prompts, stamp
from speclab.drafters.llama import TargetNetwork
from speclab.drafters.recipe import Part, Recipe
from speclab.drafters.training import LOG, source


def make(part: Part, recipe: Recipe, work: Path, into: Path, notes: Path, say: Callable[[str], None]) -> Path:
    """Train one drafter on an existing corpus, save it, and return its folder.

    Parameters
    ----------
    part : {'head', 'draft-model'}
        Which.
    recipe : Recipe
        How.
    work : Path
        Folder with ``corpus``; checkpoint and log go beside it, and an interrupted training continues from there.
    into : Path
        Folder for the drafter's own.
    notes : Path
        Folder for what a card needs; where it is not in `into`, a draft model's trained layers are kept beside it.
    say : callable
        Called with a progress line now and then.

    Raises
    ------
    UserError
        The corpus, or this training, was begun by another recipe.
    """
    stamp.hold(recipe, work / "corpus")
    stamp.hold(recipe, work / part, part)
    model = paths.root() / recipe.target
    depth = TargetNetwork.load(model).shape.layers
    if part == "head":
        head = head_training.run(recipe, work / "corpus", work / part, say)
        note(recipe, work, notes)
        folder = into / f"{recipe.name}-eagle3"
        checkpoint.save_head(head, recipe.head_layers(depth), model, folder)
        return folder
    weights = distill.run(recipe, work / "corpus", work / part, say)
    note(recipe, work, notes)
    layers = len(distill.layers_of(recipe, depth))
    folder = into / f"{recipe.name}-{layers}l"
    checkpoint.save_draft_model(weights, layers, model, folder)
    if notes.parent != into:
        checkpoint.save_layers(weights, layers, model, notes.parent / folder.name)
    return folder


def note(recipe: Recipe, work: Path, folder: Path) -> None:
    """Save beside the drafters what a card needs: the corpus by kind, the trainings' logs, the held-out prompts."""
    folder.mkdir(parents=True, exist_ok=True)
    planned = corpus.plan(recipe, work / "corpus")
    written = {file.stem: corpus.load(file) for file in corpus.files(work / "corpus")}
    kinds = Counter(prompt.kind for name in written for prompt in planned[name])
    answers = sum(int((shard.lengths - shard.prompts).sum()) for shard in written.values())
    prompt_tokens = sum(int(shard.prompts.sum()) for shard in written.values())
    counts = [(f"{kind} prompts", count) for kind, count in sorted(kinds.items())]
    counts += [("shards", len(written)), ("prompt tokens", prompt_tokens), ("answer tokens", answers)]
    lines = ["what,count", *(f"{name},{count}" for name, count in counts)]
    whole.write(folder / "corpus.csv", "\n".join(lines) + "\n", "the corpus in numbers")
    prompts.save(planned[corpus.HELD_OUT], folder / "held_out.jsonl")
    for part in ("head", "draft-model"):
        if (work / part / LOG).exists():
            log = pd.read_csv(work / part / LOG).assign(source=source())
            whole.write(folder / f"log-{part}.csv", log.to_csv(index=False, float_format="%.6g"), "a training's log")
