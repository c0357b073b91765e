"""The card of a drafter's folder: written from measurements and notes, never by hand."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Sequence
from pathlib import Path

import yaml

from speclab import paths, whole
from speclab.drafters.measure import Accepted, table
from speclab.drafters.recipe import HeadRecipe, Recipe
from speclab.engines.weights import LAYERS_FILE


def write(recipe: Recipe, folder: Path, notes: Path, rows: Sequence[Accepted]) -> Path:
    """Write ``README.md`` beside a drafter's weights and ``acceptance.csv`` beside its notes; return the card.

    Parameters
    ----------
    recipe : Recipe
        The recipe that it was trained with.
    folder : Path
        The drafter's, or the one that keeps its trained layers.
    notes : Path
        Folder of the training's notes.
    rows : sequence of Accepted
        What was measured.
    """
    whole.write(notes / f"acceptance-{folder.name}.csv", table(rows).to_csv(index=False, float_format="%.4f"),
                "the acceptance")  # fmt: skip
    card = folder / "README.md"
    whole.write(card, text(recipe, folder, notes, rows), "the model card")
    return card


def text(recipe: Recipe, folder: Path, notes: Path, rows: Sequence[Accepted]) -> str:
    """Return a card: what the weights are, their hash, data, recipe, acceptance and licence."""
    weights = next(file for name in (LAYERS_FILE, "model.safetensors") if (file := folder / name).exists())
    with weights.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    k = len(rows[0].by_position)
    measured = [
        f"| {row.set} | {row.prompts} | {row.length:.3f} | {' '.join(f'{share:.3f}' for share in row.by_position)} |"
        for row in rows
    ]
    return "\n".join([
        f"# {folder.name}",
        "",
        f"Drafts for `{paths.shown(paths.root() / recipe.target)}`; made by `speclab drafter train`, served by vLLM.",
        f"Licence: {recipe.licence}.",
        "",
        "| | |",
        "|---|---|",
        f"| weights | `{weights.name}`, {weights.stat().st_size / 1e6:.1f} MB, bfloat16 |",
        f"| sha256 | `{digest}` |",
        *(f"| {row['what']} | {int(row['count']):,} |" for row in _rows(notes / "corpus.csv")),
        "",
        "The corpus is the target's own greedy answers. Nothing of HumanEval and none of the labs' prompts is in it:",
        "a prompt or an answer that shares a run of words with one of them is left out.",
        *_further(recipe.head),
        "",
        f"## Acceptance at k = {k}, temperature 0, at most {rows[0].max_tokens} tokens",
        "",
        f"{rows[0].source}; again by `speclab drafter measure --card`.",
        "",
        "| set | prompts | acceptance length | by position |",
        "|---|---|---|---|",
        *measured,
        "",
        "## Recipe",
        "",
        "```yaml",
        yaml.safe_dump(recipe.model_dump(mode="json", exclude_none=True), sort_keys=False).rstrip(),
        "```",
        "",
    ])  # fmt: skip


def _further(how: HeadRecipe) -> list[str]:
    """Return what a head has learnt from besides its own corpus, if anything."""
    parts = [f"goes on from `{how.start}`"] if how.start else []
    parts += [f"learns from `{other}` too, which is not counted above" for other in how.beside]
    return [f"It {', and '.join(parts)}."] if parts else []


def _rows(file: Path) -> list[dict[str, str]]:
    if not file.exists():
        return []
    with file.open(encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened))
