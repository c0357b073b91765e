"""The chat workload: general questions written for this project."""

from __future__ import annotations

from importlib import resources

from speclab.prompts.base import Prompt


def measured() -> tuple[Prompt, ...]:
    """Return the 40 questions, ``chat/00`` to ``chat/39``, in the order of their file."""
    return _questions("chat.txt", "chat/{:02d}")


def warm_up() -> tuple[Prompt, ...]:
    """Return 8 other questions, ``warm-up/0`` to ``warm-up/7``."""
    return _questions("chat_warm_up.txt", "warm-up/{:d}")


def _questions(file: str, id_pattern: str) -> tuple[Prompt, ...]:
    lines = resources.files("speclab.prompts").joinpath(file).read_text(encoding="utf-8").splitlines()
    return tuple(Prompt("chat", id_pattern.format(number), line) for number, line in enumerate(lines))
