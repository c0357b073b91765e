"""Short trainings of a head, each with one change to its recipe, to see its effect before spending an hour on it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from concurrent.futures import as_completed
from pathlib import Path

import pandas as pd
import torch

from speclab import paths, processes
from speclab.drafters import checkpoint, head_training, stamp, trials
from speclab.drafters.recipe import Recipe
from speclab.drafters.training import LOG, source
from speclab.drafters.trials import UNCHANGED

SERVED = "eagle3"
"""Folder of a trial's head as vLLM serves it."""


def run(recipes: Mapping[str, Recipe], work: Path, *, workers: int, say: Callable[[str], None]) -> None:
    """Train the head of each trial, continuing an earlier run that was stopped.

    Parameters
    ----------
    recipes : mapping
        As `trials.load` returns them.
    work : Path
        Folder with ``corpus``; each trial has one of its own in ``trials``, and its head there in ``eagle3``.
    workers : int
        Trials that run at the same time, on one thread each: two threads of one training wait for each other.
    say : callable
        A module's function: the workers call it with a line now and then.

    Raises
    ------
    UserError
        The corpus, or a trial, was begun by another recipe.
    """
    stamp.hold(recipes[UNCHANGED], work / "corpus")
    for name, recipe in recipes.items():
        stamp.hold(recipe, _folder(work, name), "head")
    longest_first = sorted(recipes.items(), key=lambda item: -item[1].head.steps)  # keeps all workers busy to the end
    with processes.pool(workers) as pool:
        started = [pool.submit(_train, name, recipe, work, say) for name, recipe in longest_first]
        for training in as_completed(started):
            training.result()


def _folder(work: Path, name: str) -> Path:
    return work / "trials" / name


def _train(name: str, recipe: Recipe, work: Path, say: Callable[[str], None]) -> None:
    torch.set_num_threads(1)
    folder, model = _folder(work, name), paths.root() / recipe.target
    head = head_training.run(recipe, work / "corpus", folder, functools.partial(_named, say, name))
    checkpoint.save_head(head, recipe.head_layers(head.shape.layers), model, folder / SERVED)


def _named(say: Callable[[str], None], name: str, line: str) -> None:
    say(f"{name}: {line}")


def table(recipes: Mapping[str, Recipe], work: Path) -> pd.DataFrame:
    """Return the results of the trials.

    Parameters
    ----------
    recipes : mapping
        As `trials.load` returns them.
    work : Path
        As for `run`.

    Returns
    -------
    pd.DataFrame
        A row for each: ``trial``, ``change`` (in the recipe's words), ``steps``, ``length`` on held-out answers by
        replay, its ``gain`` over the unchanged one (0.01 is 1%; NaN of a head that went on from another), the share of
        drafts accepted up to each position, and the ``source``, their badge.
    """
    rows = []
    for name, recipe in recipes.items():
        log = _folder(work, name) / LOG
        last = pd.read_csv(log).iloc[-1]
        change = trials.described(recipe, recipes[UNCHANGED])
        rows.append({"trial": name, "change": change, **last.drop("loss"), "source": source()})
    results = pd.DataFrame(rows).rename(columns={"step": "steps"}).astype({"steps": int})
    from_nothing = [recipe.head.start is None for recipe in recipes.values()]
    results.insert(4, "gain", (results["length"] / results["length"].iloc[0] - 1).where(from_nothing))
    return results
