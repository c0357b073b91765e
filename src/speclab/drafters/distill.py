"""A small draft model: a few of the target's own layers, trained to write what the whole target writes.

Embeddings, last norm and output matrix stay the target's: only the layers are trained.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from speclab import paths
from speclab.drafters import corpus
from speclab.drafters.batches import Batch, CorpusRows
from speclab.drafters.llama import TargetNetwork, Weights, embedded, layer_of, over_sequences, read_weights, rms_norm
from speclab.drafters.loss import Goal, cross_entropy
from speclab.drafters.recipe import DraftModelRecipe, Recipe
from speclab.drafters.replay import K, Tally
from speclab.drafters.training import Schedule, train


def layers_of(recipe: Recipe, depth: int) -> tuple[int, ...]:
    """Return the target's layers that the draft model starts from."""
    return recipe.draft_model.layers or tuple(dict.fromkeys((0, 1, depth - 2, depth - 1)))


def initial(weights: Weights, layers: tuple[int, ...]) -> Weights:
    """Return float32 copies of some layers of a state dict, renumbered from 0."""
    return {
        f"model.layers.{number}.{name.removeprefix(prefix)}": tensor.float()
        for number, prefix in enumerate(f"model.layers.{layer}." for layer in layers)
        for name, tensor in weights.items()
        if name.startswith(prefix)
    }


def run(recipe: Recipe, corpus_folder: Path, folder: Path, say: Callable[[str], None]) -> Weights:
    """Train the draft model of a recipe, continuing an earlier run that was stopped; return all its weights.

    Parameters
    ----------
    recipe : Recipe
        What and how.
    corpus_folder, folder : Path
        Of the corpus, and of checkpoint and log.
    say : callable
        Called with a progress line now and then.
    """
    model = paths.root() / recipe.target
    target, source, how = TargetNetwork.load(model), read_weights(model), recipe.draft_model
    depth = target.shape.layers
    rows, held_out = (
        CorpusRows(corpus.files(corpus_folder)),
        CorpusRows([corpus_folder / f"{corpus.HELD_OUT}.safetensors"]),
    )
    (final,), layers = rows.kept((depth,)), layers_of(recipe, depth)
    learning = initial(source, layers)
    say(f"{sum(w.numel() for w in learning.values()) / 1e6:.2f} M weights that learn, layers {layers}")

    def loss(batch: Batch, step: int) -> tuple[Tensor, dict[str, float]]:
        del step
        return distilled_loss(learning, target, batch, final, rows.common_start, how)

    schedule = Schedule(how.steps, how.batch_tokens, how.rate, how.rate, (), how.warm_up, (0.9, 0.95), 0.0, 1.0,
                        recipe.seed)  # fmt: skip
    train(learning, rows, schedule, loss, lambda: replay(learning, target, held_out, how.batch_tokens), folder, say)
    return {name: tensor for name, tensor in source.items() if not name.startswith("model.layers.")} | learning


def states(weights: Weights, target: TargetNetwork, tokens: Tensor) -> Tensor:
    """Return the draft model's normed states, [rows, length, hidden], in the target's type."""
    narrow = {name: tensor.to(target.embeddings.dtype) for name, tensor in weights.items()}
    x = embedded(target, tokens)
    for number in range(len({name.split(".")[2] for name in weights})):
        x, _, _ = over_sequences(layer_of(narrow, f"model.layers.{number}."), x, target.shape)
    return rms_norm(x, target.norm, target.shape.epsilon)


def distilled_loss(
    weights: Weights, target: TargetNetwork, batch: Batch, final: int, common_start: int, how: DraftModelRecipe
) -> tuple[Tensor, dict[str, float]]:
    """Return the loss of a draft model on a batch, and the share of answer tokens that it predicts correctly."""
    position = torch.arange(batch.tokens.shape[1])
    ends, prompts = batch.lengths.unsqueeze(1), batch.prompts.unsqueeze(1)
    of_answer = ((position >= prompts - 1) & (position + 1 < ends)).flatten()
    of_prompt = ((position >= common_start) & (position < prompts - 1)).flatten()
    places = ((of_answer | of_prompt) if how.prompt_weight else of_answer).nonzero().squeeze(1)
    is_answer = of_answer[places]
    following = batch.tokens.flatten()[places + 1]
    share = torch.where(is_answer, 1.0, how.prompt_weight)
    target_states = rms_norm(batch.states[:, :, final].flatten(0, 1)[places], target.norm, target.shape.epsilon)
    goal = Goal(
        target_states, target.head, torch.where(is_answer, following, -1), share / share.sum(), how.greedy_share
    )
    value, chosen = cross_entropy(states(weights, target, batch.tokens).flatten(0, 1)[places], target.head, goal)
    return value, {"right": float((chosen == following)[is_answer].float().mean())}


@torch.inference_mode()
def replay(weights: Weights, target: TargetNetwork, rows: CorpusRows, batch_tokens: int) -> dict[str, float]:
    """Return what vLLM would accept of k drafts on known answers, as in `replay.Tally`.

    Where all earlier drafts were right, the draft model has read the answer itself, so one pass over it suffices.
    """
    tally = Tally(K)
    for chosen in rows.in_order(batch_tokens):
        batch = rows.batch(chosen)
        drafted = (states(weights, target, batch.tokens) @ target.head.T).argmax(-1)
        right = torch.zeros_like(batch.tokens, dtype=torch.bool)
        right[:, :-2] = drafted[:, 1:-1] == batch.tokens[:, 2:]
        reached, on = torch.zeros_like(batch.tokens), torch.ones_like(right)
        for depth in range(K):
            shifted = torch.zeros_like(right)
            shifted[:, : right.shape[1] - depth] = right[:, depth:]
            shifted &= torch.arange(right.shape[1]) + 2 + depth < batch.lengths.unsqueeze(1)
            on = on & shifted
            reached += on
        tally.add(reached, batch)
    return tally.figures()
