"""Train an EAGLE-3 head on a corpus, and judge it by replaying what vLLM does with its drafts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from speclab import paths
from speclab.drafters import corpus, eagle3
from speclab.drafters.batches import Batch, CorpusRows
from speclab.drafters.eagle3 import Head, Unrolled
from speclab.drafters.llama import TargetNetwork, read_weights, rms_norm
from speclab.drafters.loss import Goal, cross_entropy
from speclab.drafters.recipe import HeadRecipe, Recipe
from speclab.drafters.replay import K, Tally
from speclab.drafters.training import Schedule, train
from speclab.errors import UserError


def draft_ids(rows: CorpusRows, vocabulary: int, size: int) -> Tensor:
    """Return the tokens that a head can draft, rising: the most frequent in answers, then the lowest numbers."""
    order = torch.argsort(rows.counted(vocabulary), descending=True, stable=True)
    return order[: min(size, vocabulary)].sort().values


def _kept_ids(folder: Path, rows: CorpusRows, vocabulary: int, size: int) -> Tensor:
    """Return the draft vocabulary that a run began with: later shards do not change it."""
    file = folder / "draft_ids.safetensors"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        save_file({"draft_ids": draft_ids(rows, vocabulary, size)}, str(file))
    return load_file(str(file))["draft_ids"]


def run(recipe: Recipe, corpus_folder: Path, folder: Path, say: Callable[[str], None]) -> Head:
    """Train the head of a recipe, continuing an earlier run that was stopped; return it.

    Parameters
    ----------
    recipe : Recipe
        What and how.
    corpus_folder : Path
        Of the corpus; the training shards that exist are used.
    folder : Path
        Of checkpoint and log.
    say : callable
        Called with a progress line now and then.
    """
    model = paths.root() / recipe.target
    target = TargetNetwork.load(model)
    depth = target.shape.layers
    held_out = CorpusRows([corpus_folder / f"{corpus.HELD_OUT}.safetensors"])
    files = corpus.files(corpus_folder)[: recipe.head.shards]
    files += [file for other in recipe.head.beside for file in corpus.files(paths.root() / other)]
    rows = CorpusRows(files, keep_out=held_out.asked())
    *reads, final = rows.kept((*recipe.head_layers(depth), depth))
    if recipe.head.start:
        head = going_on(recipe, target, tuple(reads))
    else:
        ids = _kept_ids(folder, rows, target.shape.vocabulary, recipe.head.draft_vocabulary)
        head = beginning(recipe, target, ids, tuple(reads))
    say(f"{sum(w.numel() for w in head.weights.values()) / 1e6:.2f} M weights, {rows.answer_tokens} answer tokens, "
        f"{len(rows.places)} rows; draft vocabulary {len(head.draft_ids)}")  # fmt: skip
    teacher = Teacher(target, head.draft_ids, final, rows.common_start)
    how = recipe.head

    def loss(batch: Batch, step: int) -> tuple[Tensor, dict[str, float]]:
        return unrolled_loss(head, teacher, batch, how, 1 if step < how.single_share * how.steps else how.unrolled)

    def judge() -> dict[str, float]:
        return replay(head, teacher, held_out, how.batch_tokens)

    schedule = Schedule(how.steps, how.batch_tokens, how.rate, how.head_rate, ("lm_head.weight",), how.warm_up,
                        how.betas, how.weight_decay, how.clip, recipe.seed)  # fmt: skip
    train(head.weights, rows, schedule, loss, judge, folder, say)
    return head


def beginning(recipe: Recipe, target: TargetNetwork, ids: Tensor, reads: tuple[int, ...]) -> Head:
    """Return the untrained head of a recipe.

    Parameters
    ----------
    recipe : Recipe
        Its seed is used.
    target : TargetNetwork
        The recipe's.
    ids : Tensor
        The draft vocabulary, rising.
    reads : tuple[int, ...]
        Which of the corpus's states it reads, by position.
    """
    prefix = f"model.layers.{target.shape.layers - 1}."
    source = read_weights(paths.root() / recipe.target)
    last = {name.removeprefix(prefix): weight for name, weight in source.items() if name.startswith(prefix)}
    return eagle3.initial(target, last, ids, reads, recipe.seed)


def going_on(recipe: Recipe, target: TargetNetwork, reads: tuple[int, ...]) -> Head:
    """Return the head that a recipe starts from, for further training.

    Parameters
    ----------
    recipe, target, reads
        As for `beginning`.

    Raises
    ------
    UserError
        It reads other layers, or another target.
    """
    folder, layers = paths.root() / str(recipe.head.start), recipe.head_layers(target.shape.layers)
    saved_layers = json.loads((folder / "config.json").read_text(encoding="utf-8"))["eagle_aux_hidden_state_layer_ids"]
    if tuple(saved_layers) != layers:
        raise UserError(f"{paths.shown(folder)} reads after layers {saved_layers}, the recipe after {list(layers)}",
                        "write the same in head.layers", key="head.start")  # fmt: skip
    saved = load_file(str(folder / "model.safetensors"))
    ids = saved["d2t"] + torch.arange(len(saved["d2t"]))
    head = beginning(recipe, target, ids, reads)
    for name, weight in head.weights.items():
        if saved[name].shape != weight.shape:
            raise UserError(f"{name} is {list(saved[name].shape)} there, {list(weight.shape)} for this target",
                            "give a head of the same target", key="head.start")  # fmt: skip
    return replace(head, weights={name: saved[name].float() for name in head.weights})


@dataclass(frozen=True, slots=True)
class Teacher:
    """The target, as far as the loss needs it.

    Attributes
    ----------
    target : TargetNetwork
        The network.
    draft_ids : Tensor
        The draft vocabulary.
    final : int
        Position of its last layer's states in the corpus.
    common_start : int
        Tokens that all prompts begin with.
    """

    target: TargetNetwork
    draft_ids: Tensor
    final: int
    common_start: int

    def numbers(self, tokens: Tensor) -> Tensor:
        """Return the draft vocabulary's numbers of tokens; -1 where it has none."""
        number = torch.searchsorted(self.draft_ids, tokens).clamp(max=len(self.draft_ids) - 1)
        return torch.where(self.draft_ids[number] == tokens, number, -1)


def unrolled_loss(
    head: Head, teacher: Teacher, batch: Batch, how: HeadRecipe, draft_steps: int
) -> tuple[Tensor, dict[str, float]]:
    """Return the loss of some draft steps on a batch, and the share of right drafts of each.

    A later step is trained only where all drafts before it were right: only there can its own be accepted.
    """
    length = batch.tokens.shape[1]
    at = torch.arange(length)
    ends, prompts = batch.lengths.unsqueeze(1), batch.prompts.unsqueeze(1)
    of_answer = (at >= prompts - 1) & (at + 2 < ends)
    of_prompt = (at >= teacher.common_start) & (at < prompts - 1) & (at + 2 < ends)
    if how.prompt_weight == 0:
        of_prompt = torch.zeros_like(of_prompt)
    roots = (of_answer | of_prompt).flatten().nonzero().squeeze(1)
    tokens, final = batch.tokens.flatten(), batch.states[:, :, teacher.final].flatten(0, 1)
    answering, last = (
        of_answer.flatten(),
        (ends - 1).expand_as(of_answer).flatten() + torch.arange(len(batch.tokens)).repeat_interleave(length) * length,
    )  # the position of each row's last token
    target, head_rows = teacher.target, teacher.target.head[teacher.draft_ids]
    unrolled = Unrolled(head, target.embeddings, batch, roots)
    total, whole, figures = torch.zeros(()), 0.0, {}
    for depth in range(draft_steps):
        roots = unrolled.roots
        states, drafted = unrolled.step(), tokens[roots + 2 + depth]
        numbers, is_answer = teacher.numbers(drafted), answering[roots]
        weights = torch.where(is_answer, (numbers >= 0).float(), how.prompt_weight)
        whole = whole or float(weights.sum())
        goal = Goal(
            rms_norm(final[roots + 1 + depth], target.norm, target.shape.epsilon), head_rows,
            torch.where(is_answer, numbers, -1), weights * (how.step_decay**depth / whole), how.greedy_share,
        )  # fmt: skip
        value, chosen = cross_entropy(states, unrolled.head_weight, goal)
        total = total + value
        right = chosen == numbers
        if is_answer.any():
            figures[f"right_{depth}"] = float(right[is_answer].float().mean())
        on = right & (roots + 3 + depth <= last[roots])
        if not on.any():
            break
        unrolled.keep(on)
    return total, figures


@torch.inference_mode()
def replay(head: Head, teacher: Teacher, rows: CorpusRows, batch_tokens: int) -> dict[str, float]:
    """Return what vLLM would accept of k drafts on known answers, as in `replay.Tally`."""
    tally = Tally(K)
    for chosen in rows.in_order(batch_tokens):
        batch = rows.batch(chosen)
        tally.add(chain(head, teacher, batch, K), batch)
    return tally.figures()


def chain(head: Head, teacher: Teacher, batch: Batch, k: int) -> Tensor:
    """Return how many of k drafts from each position are right before the first wrong one, [rows, length]."""
    length = batch.tokens.shape[1]
    at = torch.arange(length)
    roots = (at >= batch.prompts.unsqueeze(1) - 1) & (at + 2 < batch.lengths.unsqueeze(1))
    unrolled = Unrolled(head, teacher.target.embeddings, batch, roots.flatten().nonzero().squeeze(1))
    tokens = batch.tokens.flatten()
    ends = (batch.lengths + torch.arange(len(batch.lengths)) * length).repeat_interleave(length)
    reached = torch.zeros(batch.tokens.numel(), dtype=torch.int64)
    for depth in range(k):
        chosen = (unrolled.step() @ unrolled.head_weight.T).argmax(-1)
        right = chosen == teacher.numbers(tokens[unrolled.roots + 2 + depth])
        reached[unrolled.roots[right]] += 1
        unrolled.keep(right & (unrolled.roots + 3 + depth < ends[unrolled.roots]))
        if not len(unrolled.roots):
            break
    return reached.view(batch.tokens.shape)
