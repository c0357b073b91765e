"""The corpus: the target's own greedy answers with the hidden states behind them, in shards, each written whole."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from speclab import paths, processes, whole
from speclab.drafters import prompts, sampling, stamp
from speclab.drafters.dialogue import Dialogue
from speclab.drafters.generate import write
from speclab.drafters.llama import TargetNetwork
from speclab.drafters.recipe import Recipe
from speclab.errors import UserError

HELD_OUT = "held-out"
PROMPTS = "prompts.jsonl"


@dataclass(frozen=True, slots=True)
class Shard:
    """Rows of a corpus, one after the other.

    Attributes
    ----------
    tokens : Tensor
        [total], int32: prompt and answer of each row.
    lengths, prompts : Tensor
        [rows], int32: a row's tokens, and how many of them are the prompt's.
    states : Tensor
        [total, kept layers, hidden], bfloat16; a row's last token was never read, its states are 0.
    layers : tuple[int, ...]
        After which layers they are kept.
    """

    tokens: Tensor
    lengths: Tensor
    prompts: Tensor
    states: Tensor
    layers: tuple[int, ...]


def files(folder: Path) -> list[Path]:
    """Return the training shards of a corpus that exist, in order."""
    return sorted(folder.glob("shard-*.safetensors"))


def load(file: Path) -> Shard:
    """Return one shard; its states are read when they are used.

    Raises
    ------
    UserError
        It does not say which layers it keeps.
    """
    with safe_open(str(file), framework="pt") as opened:
        layers = (opened.metadata() or {}).get("layers")
        if layers is None:
            raise UserError("does not say which layers it keeps: an older speclab wrote it",
                            "move the corpus away and write it again", file=file)  # fmt: skip
        tokens, lengths, prompts, states = map(opened.get_tensor, ("tokens", "lengths", "prompts", "states"))
        return Shard(tokens, lengths, prompts, states, tuple(int(layer) for layer in layers.split()))


def make(recipe: Recipe, folder: Path, *, workers: int, say: Callable[[str], None]) -> None:
    """Write the missing parts of a corpus: first its prompts, then the held-out answers, then the shards.

    Parameters
    ----------
    recipe : Recipe
        The prompts to make, and the target that answers them.
    folder : Path
        The corpus's folder; an interrupted corpus is continued there.
    workers : int
        Processes of one thread each: on a busy machine they do not wait for each other, as threads do.
    say : callable
        Called with a progress line now and then.

    Raises
    ------
    UserError
        The folder's corpus was begun by another recipe.
    """
    stamp.hold(recipe, folder)
    with processes.pool(workers) as pool:
        if not (folder / PROMPTS).exists():
            batches = prompts.openings(recipe)
            _all(pool, _write_turns, recipe, folder, [f"turns-{name}.json" for name in batches], say)
            turns = {name: json.loads((folder / f"turns-{name}.json").read_text()) for name in batches}
            dialogue = Dialogue.load(paths.root() / recipe.target)
            prompts.save(prompts.collect(turns, lambda text: len(dialogue.asked(text)), recipe, say), folder / PROMPTS)
        _all(pool, _write_shard, recipe, folder, [f"{name}.safetensors" for name in plan(recipe, folder)], say)


Task = Callable[[Recipe, Path, str], str]


def _all(
    pool: ProcessPoolExecutor,
    write_one: Task,
    recipe: Recipe,
    folder: Path,
    names: list[str],
    say: Callable[[str], None],
) -> None:
    """Write the files of a folder that do not exist yet."""
    missing = [name for name in names if not (folder / name).exists()]
    started = time.monotonic()
    for count, task in enumerate(as_completed(pool.submit(write_one, recipe, folder, name) for name in missing), 1):
        left = (time.monotonic() - started) / count * (len(missing) - count)
        say(f"{count} of {len(missing)}: {task.result()}; {left / 60:.0f} min left")


def _write_turns(recipe: Recipe, folder: Path, file: str) -> str:
    torch.set_num_threads(1)
    name = file.removeprefix("turns-").removesuffix(".json")
    turns = sampling.sampled(*_model(recipe.target), name, prompts.openings(recipe)[name], recipe.seed)
    whole.write(folder / file, json.dumps(turns), "turns that the target wrote")
    return name


def plan(recipe: Recipe, folder: Path) -> dict[str, list[prompts.CorpusPrompt]]:
    """Return which prompts each shard holds, the held-out ones first.

    A shard's prompts are of similar length, so that little is spent on padding; the shards' order is random, so that
    the first ones already hold all kinds.
    """
    shuffler, shuffled = random.Random(f"{recipe.seed}/shards"), prompts.read(folder / PROMPTS)
    shuffler.shuffle(shuffled)
    held, rest = shuffled[: recipe.corpus.held_out], shuffled[recipe.corpus.held_out :]
    rest.sort(key=lambda prompt: len(prompt.text))
    rows = recipe.corpus.rows
    groups = [rest[start : start + rows] for start in range(0, len(rest), rows)]
    shuffler.shuffle(groups)
    return {HELD_OUT: held} | {f"shard-{index:03d}": group for index, group in enumerate(groups)}


def _write_shard(recipe: Recipe, folder: Path, file: str) -> str:
    torch.set_num_threads(1)
    name = file.removesuffix(".safetensors")
    target, dialogue = _model(recipe.target)
    chosen, layers = plan(recipe, folder)[name], recipe.kept_layers(target.shape.layers)
    rows = write(
        target, [dialogue.asked(prompt.text) for prompt in chosen], most=recipe.corpus.answer_tokens,
        stops=dialogue.stops, keep=layers,
    )  # fmt: skip
    keep_out = prompts.judged()
    rows = [row for row in rows if name == HELD_OUT or not keep_out.shares(dialogue.text(row.tokens))]
    tensors = {
        "tokens": torch.cat([row.tokens for row in rows]).int(),
        "lengths": torch.tensor([len(row.tokens) for row in rows], dtype=torch.int32),
        "prompts": torch.tensor([row.prompt for row in rows], dtype=torch.int32),
        "states": torch.cat([torch.cat((row.states, torch.zeros_like(row.states[:1]))) for row in rows]),
    }
    new = folder / f".{name}.new"
    save_file(tensors, str(new), {"layers": " ".join(map(str, layers))})
    new.replace(folder / file)
    return f"{name}, {int((tensors['lengths'] - tensors['prompts']).sum())} answer tokens"


_MODELS: dict[str, tuple[TargetNetwork, Dialogue]] = {}


def _model(name: str) -> tuple[TargetNetwork, Dialogue]:
    """Return a target and its dialogue, loaded once in each process."""
    if name not in _MODELS:
        _MODELS[name] = TargetNetwork.load(paths.root() / name), Dialogue.load(paths.root() / name)
    return _MODELS[name]


def rows_of(shard: Shard) -> Iterator[tuple[int, int, int]]:
    """Yield start, end and prompt length of each row."""
    ends = shard.lengths.cumsum(0).tolist()
    for end, length, prompt in zip(ends, shard.lengths.tolist(), shard.prompts.tolist(), strict=True):
        yield end - length, end, prompt
