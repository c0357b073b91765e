"""The recipe of a drafter: what the corpus holds, how the head is trained; read from a YAML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from speclab import paths
from speclab.config import Chosen, read_yaml, validated
from speclab.engines.weights import read_after
from speclab.lab import Name

MINUTES = 60
"""About what the kept recipe takes on two cores with nothing else running."""

Count = Annotated[int, Field(strict=True, ge=0, le=10_000_000)]
Some = Annotated[int, Field(strict=True, gt=0, le=10_000_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Rate = Annotated[float, Field(gt=0, le=1)]


class CorpusRecipe(Chosen):
    """What the target is asked, and how long it answers."""

    sampled_questions: Count = 3200
    """User turns that the target writes itself from an opening, before unusable ones are dropped."""
    sampled_stubs: Count = 1600
    """Function stubs that it writes itself, likewise."""
    templated_questions: Count = 2200
    library_functions: Count = 2600
    """Prompts from functions of Python's standard library: to be completed, revised, explained."""
    held_out: Some = 128
    """Prompts that are held out from training."""
    prompt_tokens: Some = 256
    """Longer prompts are left out."""
    answer_tokens: Some = 160
    rows: Some = 128
    """Rows of a shard; they are written together."""
    layers: tuple[Count, ...] | None = None
    """Layers whose states are kept, besides those that the head reads and the last one."""


class HeadRecipe(Chosen):
    """How the EAGLE-3 head is made."""

    start: str | None = None
    """An existing head to continue from: its folder, from the checkout's root. Its draft vocabulary stays."""
    layers: tuple[Count, ...] | None = None
    """Layers of the target whose outputs it reads; (2, n/2, n-3) of n by default."""
    shards: Some | None = None
    """How many of the corpus's shards to use, from the first; all by default."""
    beside: tuple[str, ...] = ()
    """Folders of other corpora of the same target, from the checkout's root, to learn from as well."""
    draft_vocabulary: Some = 12_288
    steps: Some = 3000
    batch_tokens: Some = 2048
    unrolled: Annotated[int, Field(strict=True, gt=0, le=8)] = 4
    """Successive draft steps that are trained on each sequence."""
    single_share: Share = 0.15
    """Share of the steps, at the start, that train the first draft step alone."""
    step_decay: Share = 0.8
    """Weight of a draft step relative to the one before it."""
    greedy_share: Share = 0.5
    """Weight of the greedy token beside the target's distribution."""
    prompt_weight: Share = 0.3
    """Weight of a prompt's positions beside an answer's; they have the target's distribution only."""
    rate: Rate = 1e-3
    head_rate: Rate = 3e-4
    warm_up: Share = 0.02
    betas: tuple[Share, Share] = (0.9, 0.95)
    weight_decay: Share = 0.0
    clip: Annotated[float, Field(gt=0, le=1000)] = 1.0


class DraftModelRecipe(Chosen):
    """How the small draft model is distilled."""

    layers: tuple[Count, ...] | None = None
    """Layers of the target that it starts from; the first two and the last two by default."""
    steps: Some = 500
    batch_tokens: Some = 2048
    rate: Rate = 5e-4
    warm_up: Share = 0.03
    greedy_share: Share = 0.5
    prompt_weight: Share = 0.3


class Recipe(Chosen):
    """A whole recipe."""

    name: Name
    """What the drafters are called: ``<name>-eagle3``."""
    target: str
    """The target's folder, from the checkout's root."""
    licence: str = "that of the target"
    """The drafters' licence, as the card states it."""
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**31)] = 9
    corpus: CorpusRecipe = CorpusRecipe()
    head: HeadRecipe = HeadRecipe()
    draft_model: DraftModelRecipe = DraftModelRecipe()

    def head_layers(self, depth: int) -> tuple[int, ...]:
        """Return the target's layers whose outputs the head reads: the recipe's, or vLLM's default."""
        return self.head.layers if self.head.layers is not None else read_after(depth)

    def kept_layers(self, depth: int) -> tuple[int, ...]:
        """Return the target's layers after which the corpus keeps states, rising."""
        return tuple(sorted({*(self.corpus.layers or ()), *self.head_layers(depth), depth}))

    def scaled(self, factor: float) -> Recipe:
        """Return a recipe with the corpus and the steps scaled by a factor."""

        def times(part: Chosen, *names: str) -> Chosen:
            return part.model_copy(update={name: max(1, round(factor * getattr(part, name))) for name in names})

        corpus = times(self.corpus, "sampled_questions", "sampled_stubs", "templated_questions", "library_functions")
        return self.model_copy(
            update={
                "corpus": corpus,
                "head": times(self.head, "steps"),
                "draft_model": times(self.draft_model, "steps"),
            }
        )


Part = Literal["head", "draft-model"]


def kept() -> Path:
    """Return the recipe of the weights that are kept."""
    return paths.drafters() / "smollm2-135m" / "recipe.yml"


def load(file: Path) -> Recipe:
    """Return the recipe of a file.

    Raises
    ------
    UserError
        The file is missing or holds a mistake.
    """
    return validated(Recipe, read_yaml(file), file)
