"""What would stop a drafter's training, checked before any work: packages, the target's files, memory, disk."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

from speclab import paths
from speclab.drafters import stamp
from speclab.drafters.recipe import Recipe
from speclab.engines.weights import made_by
from speclab.errors import UserError

PACKAGES = ("torch", "transformers", "safetensors")
ARCHITECTURE = "LlamaForCausalLM"
GIB = 2**30
ROOM_FOR_TRAINING = 3 * GIB
"""Weights, gradients, optimiser and one batch of a head of some ten million weights, bytes."""


def check(recipe: Recipe, folder: Path, workers: int) -> None:
    """Check for anything that would stop the work that a recipe asks for.

    Parameters
    ----------
    recipe : Recipe
        What is to be made.
    folder : Path
        Where the corpus and the checkpoints go.
    workers : int
        Processes that write the corpus at the same time.

    Raises
    ------
    UserError
        The first problem: a missing package, a folder without a model, an architecture that vLLM's EAGLE-3 head does
        not support, a tokenizer without a chat template, too little memory or disk space.
    """
    for package in PACKAGES:
        if find_spec(package) is None:
            raise UserError(
                f"the package {package} is not installed",
                "make install-cpu and run .venv-cpu/bin/speclab, or pip install -e '.[drafters]'",
            )
    model = paths.root() / recipe.target
    config = _config(model)
    _check_architecture(config, model)
    _check_tokenizer(model)
    for layer in (*(recipe.corpus.layers or ()), *(recipe.head.layers or ()), *(recipe.draft_model.layers or ())):
        if layer > config["num_hidden_layers"]:
            raise UserError(f"the recipe reads layer {layer}, the target has {config['num_hidden_layers']}",
                            "name layers that it has, or leave them out", key="layers")  # fmt: skip
    start = recipe.head.start and paths.root() / recipe.head.start
    if start and not (start / "model.safetensors").exists():
        raise UserError(f"no head in {paths.shown(start)}", "give the folder of one, or leave it out", key="head.start")
    for other in recipe.head.beside:
        stamp.same_target(recipe, paths.root() / other)
    _check_room(memory_bytes(recipe, config, model, workers), psutil.virtual_memory().available, "memory",
                "free some, or give the recipe fewer rows (corpus.rows) or fewer --workers")  # fmt: skip
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    _check_room(disk_bytes(recipe, config), shutil.disk_usage(existing).free, f"disk space in {paths.shown(existing)}",
                "free some, or give the recipe a smaller corpus")  # fmt: skip


def memory_bytes(recipe: Recipe, config: dict[str, Any], model: Path, workers: int) -> int:
    """Return about how much memory the work needs: the larger of writing the corpus and training."""
    layer_count, row_tokens = len(recipe.kept_layers(config["num_hidden_layers"])), _row_tokens(recipe)
    heads = config.get("num_key_value_heads") or config["num_attention_heads"]
    width = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    cache = 2 * config["num_hidden_layers"] * heads * width * 2
    weights = sum(file.stat().st_size for file in model.glob("*.safetensors"))
    writing = weights + recipe.corpus.rows * row_tokens * (cache + 2 * layer_count * config["hidden_size"] * 2)
    return max(workers * writing, weights + ROOM_FOR_TRAINING)


def disk_bytes(recipe: Recipe, config: dict[str, Any]) -> int:
    """Return how much disk space a corpus and its checkpoints take at most."""
    corpus = recipe.corpus
    rows = corpus.sampled_questions + corpus.sampled_stubs + corpus.templated_questions + corpus.library_functions
    states = len(recipe.kept_layers(config["num_hidden_layers"])) * config["hidden_size"] * 2
    return rows * _row_tokens(recipe) * states + GIB


def _row_tokens(recipe: Recipe) -> int:
    return recipe.corpus.prompt_tokens + recipe.corpus.answer_tokens


def _config(model: Path) -> dict[str, Any]:
    file = model / "config.json"
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        remedy = _remedy(model)
        raise UserError(f"no model in {paths.shown(model)}", remedy, key="target") from None
    except (OSError, ValueError) as error:
        raise UserError(f"cannot be read ({error})", "give the folder of a model", file=file) from None
    if not isinstance(content, dict):
        raise UserError("holds no model's shape", "give the folder of a model", file=file)
    return content


def _remedy(model: Path) -> str:
    command = made_by(model.name)
    return f"make it: {command}" if command else "give the folder of a model"


def _check_architecture(config: dict[str, Any], model: Path) -> None:
    architectures = config.get("architectures") or ["none"]
    if architectures[0] != ARCHITECTURE:
        raise UserError(f"is a {architectures[0]}", f"give a {ARCHITECTURE}: heads of others have a different layer",
                        file=model / "config.json", key="architectures")  # fmt: skip
    wrong = [
        (key, config[key]) for key, allowed in (
            ("attention_bias", (False, None)), ("mlp_bias", (False, None)), ("hidden_act", ("silu", None)),
        ) if config.get(key) not in allowed
    ]  # fmt: skip
    rotation = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if rotation.get("rope_type", rotation.get("type", "default")) != "default":
        wrong.append(("rope_type", rotation.get("rope_type", rotation.get("type"))))
    if wrong:
        key, value = wrong[0]
        raise UserError(f"found {value!r}", "give a Llama-type target without biases, with silu and plain rotation",
                        file=model / "config.json", key=key)  # fmt: skip
    if not any(model.glob("*.safetensors")):
        raise UserError(f"no weights in {paths.shown(model)}", "put its safetensors files there", key="target")


def _check_tokenizer(model: Path) -> None:
    if not (model / "tokenizer.json").exists():
        raise UserError(f"no tokenizer.json in {paths.shown(model)}", "save the target's fast tokenizer there",
                        key="target")  # fmt: skip
    settings = model / "tokenizer_config.json"
    inside = settings.exists() and "chat_template" in json.loads(settings.read_text(encoding="utf-8"))
    if not inside and not (model / "chat_template.jinja").exists():
        raise UserError(f"no chat template in {paths.shown(model)}", "use an instruction-tuned target: it is asked "
                        "questions, and its template marks where they begin and end", key="target")  # fmt: skip


def _check_room(needed: int, available: int, resource: str, remedy: str) -> None:
    if available < needed:
        raise UserError(
            f"about {needed / GIB:.1f} GiB of {resource} are needed, {available / GIB:.1f} are free", remedy
        )
