"""The commands ``speclab drafter ...``: make a drafter for a target, and measure its acceptance."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from speclab import paths, whole
from speclab.cli.options import err
from speclab.drafters import checks, trials
from speclab.drafters import recipe as recipes
from speclab.drafters.recipe import Part, Recipe
from speclab.errors import UserError

cli = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)

UNKNOWN = str(Recipe.model_fields["licence"].default)
"""Licence of the drafters of another target."""
PARTS: tuple[Part, ...] = ("head", "draft-model")
RecipeOption = Annotated[
    Path | None, typer.Option("--recipe", help="A YAML file; data/drafters/smollm2-135m/recipe.yml by default.")
]
TargetOption = Annotated[Path | None, typer.Option("--target", help="Another target's folder; Llama-type.")]
MinutesOption = Annotated[
    float | None, typer.Option(min=1, help="Corpus and steps are scaled to this; the unscaled recipe takes about 60.")
]
FolderOption = Annotated[Path | None, typer.Option("--folder", help="For the work; .build/drafters/NAME by default.")]
WorkersOption = Annotated[int, typer.Option(min=1, help="Processes that write the corpus.")]


@cli.command("corpus")
def write_corpus(
    recipe: RecipeOption = None,
    target: TargetOption = None,
    minutes: MinutesOption = None,
    folder: FolderOption = None,
    workers: WorkersOption = 2,
) -> None:
    """Let the target write the corpus: prompts, answers and hidden states. Continues where it was stopped."""
    chosen, work = _prepared(recipe, target, minutes, folder, workers)
    from speclab.drafters import corpus

    corpus.make(chosen, work / "corpus", workers=workers, say=_say)


@cli.command("train")
def train(
    recipe: RecipeOption = None,
    target: TargetOption = None,
    minutes: MinutesOption = None,
    folder: FolderOption = None,
    workers: WorkersOption = 2,
    part: Annotated[Part | None, typer.Option(help="Only this one; both by default.")] = None,
    as_is: Annotated[bool, typer.Option("--as-is", help="Use the corpus as it is; write no more.")] = False,
    into: Annotated[
        Path | None,
        typer.Option(help="Folder for the drafters; by default models/, and data/drafters/ for our own kept ones."),
    ] = None,
) -> None:
    """Train an EAGLE-3 head and a small draft model; the missing parts of the corpus are written first."""
    chosen, work = _prepared(recipe, target, minutes, folder, workers)
    from speclab.drafters import corpus, making

    if not as_is:
        corpus.make(chosen, work / "corpus", workers=workers, say=_say)
    else:
        _hold_corpus(work)
    home = into or _home(recipe, target, minutes)
    for kind in (part,) if part else PARTS:
        folder = home if kind == "head" else into or paths.root() / "models"
        typer.echo(paths.shown(making.make(kind, chosen, work, folder, home / chosen.name, _say)))


@cli.command("try")
def try_changes(
    changes: Annotated[
        Path | None, typer.Argument(help="A YAML file; data/drafters/smollm2-135m/trials.yml by default.")
    ] = None,
    recipe: RecipeOption = None,
    target: TargetOption = None,
    folder: FolderOption = None,
    workers: Annotated[int, typer.Option(min=1, help="Trainings at the same time, one thread each.")] = 2,
) -> None:
    """Train the head briefly with each change of the recipe in turn, and write what each gains.

    The corpus must exist. The table goes beside the file of changes, as tried.csv. Continues where it was stopped.
    """
    chosen, work = _prepared(recipe, target, None, folder, workers)
    from speclab.drafters import trying

    file = changes or trials.kept()
    recipe_of = trials.load(file, chosen)
    for name, changed in recipe_of.items():
        with trials.mistakes_of(name, file):
            checks.check(changed, work, workers)
    _hold_corpus(work)
    trying.run(recipe_of, work, workers=workers, say=_say)
    results = trying.table(recipe_of, work)
    whole.write(file.with_name("tried.csv"), results.to_csv(index=False, float_format="%.4f"), "what was tried")
    typer.echo(results.drop(columns=["change", "source"]).to_string(index=False, float_format="%.3f"))


@cli.command("measure")
def measure(
    model: Annotated[
        Path | None, typer.Argument(help="The drafter's folder; the kept EAGLE-3 head by default.")
    ] = None,
    recipe: RecipeOption = None,
    target: TargetOption = None,
    minutes: MinutesOption = None,
    trial: Annotated[str | None, typer.Option(help="The trial of trials.yml that trained it.")] = None,
    k: Annotated[int, typer.Option(min=1, help="Draft tokens at each step.")] = 3,
    lab: Annotated[str | None, typer.Option(help="Lab whose server flags are used; the target's by default.")] = None,
    card: Annotated[
        bool, typer.Option("--card/--no-card", help="Rewrite the model card from what was measured.")
    ] = False,
) -> None:
    """Serve a drafter with real vLLM and print its acceptance, by vLLM's counters, on three sets of prompts."""
    from speclab.drafters import card as cards
    from speclab.drafters import measure as measuring

    chosen = _recipe(recipe, target, minutes)
    if trial is not None:
        tried = trials.load(trials.kept(), chosen)
        if trial not in tried:
            raise UserError(f"no trial {trial!r}", f"there are: {', '.join(tried)}", key="--trial")
        chosen = tried[trial]
    folder = model or paths.drafters() / f"{chosen.name}-eagle3"
    notes = next((home / chosen.name for home in (folder.parent, paths.drafters()) if (home / chosen.name).is_dir()),
                 folder.parent / chosen.name)  # fmt: skip
    rows = measuring.run(chosen, folder, notes, k, _say, lab)
    typer.echo(measuring.table(rows).to_string(index=False, float_format="%.3f"))
    if card:
        kept = notes.parent / folder.name
        typer.echo(paths.shown(cards.write(chosen, kept if kept.is_dir() else folder, notes, rows)))


def _prepared(
    recipe: Path | None, target: Path | None, minutes: float | None, folder: Path | None, workers: int
) -> tuple[Recipe, Path]:
    chosen = _recipe(recipe, target, minutes)
    name = chosen.name if minutes is None else f"{chosen.name}-{minutes:g}-minutes"
    work = folder or paths.root() / ".build" / "drafters" / name
    checks.check(chosen, work, workers)
    return chosen, work


def _hold_corpus(work: Path) -> None:
    from speclab.drafters import corpus

    if not corpus.files(work / "corpus"):
        raise UserError(f"no shard in {paths.shown(work / 'corpus')}", "write some first: speclab drafter corpus")


def _home(recipe: Path | None, target: Path | None, minutes: float | None) -> Path:
    """Return where a head belongs: with the kept ones if it is made by the kept recipe, unchanged."""
    return paths.drafters() if (recipe, target, minutes) == (None, None, None) else paths.root() / "models"


def _recipe(file: Path | None, target: Path | None, minutes: float | None) -> Recipe:
    chosen = recipes.load(file or recipes.kept())
    if minutes is not None:
        chosen = chosen.scaled(minutes / recipes.MINUTES)
    if target is None:
        return chosen
    if not target.is_dir():
        raise UserError(f"no folder {target}", "give the folder of a Llama-type model", key="--target")
    folder = target.resolve()
    return chosen.model_copy(update={"target": str(folder), "name": folder.name, "licence": UNKNOWN})


def _say(line: str) -> None:
    err.print(f"{time.strftime('%H:%M:%S')} {line}", highlight=False, markup=False, soft_wrap=True)
