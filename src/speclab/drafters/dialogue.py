"""Where a user's turn begins and ends in the target's own chat template."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MARK = "XYZZYMARKXYZZY"


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A target's tokenizer and template.

    Attributes
    ----------
    tokenizer : PreTrainedTokenizerFast
    before, after : str
        What the template puts around the only user message; `after` ends where the answer begins.
    stops : tuple[int, ...]
        Tokens that end an answer.
    turn_ends : int
        The token with which a user's turn ends.
    """

    tokenizer: Any
    before: str
    after: str
    stops: tuple[int, ...]
    turn_ends: int

    @classmethod
    def load(cls, folder: Path) -> Dialogue:
        """Return the dialogue of a model's folder."""
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(folder)
        text = tokenizer.apply_chat_template(
            [{"role": "user", "content": _MARK}], tokenize=False, add_generation_prompt=True
        )
        before, after = text.split(_MARK)
        first = tokenizer.encode(after, add_special_tokens=False)[0]
        return cls(tokenizer, before, after, _stops(folder), first)

    def asked(self, message: str) -> list[int]:
        """Return the tokens that the target reads when `message` is the whole conversation."""
        return self._encoded(self.before + message + self.after)

    def opened(self, beginning: str) -> list[int]:
        """Return the tokens of a dialogue that breaks off inside the user's first turn."""
        return self._encoded(self.before + beginning)

    def text(self, tokens: Any) -> str:
        """Return the text of tokens, without special ones."""
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True))

    def _encoded(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False))


def _stops(folder: Path) -> tuple[int, ...]:
    for name in ("generation_config.json", "config.json"):
        if (folder / name).exists():
            stops = json.loads((folder / name).read_text(encoding="utf-8")).get("eos_token_id")
            if stops is not None:
                return tuple(stops) if isinstance(stops, list) else (int(stops),)
    return ()
