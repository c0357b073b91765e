"""One answer of the mock: how many tokens each of its steps gives."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from speclab.engines.mock_script import Acceptance, Script

_GOLDEN, _SILVER = (math.sqrt(5) - 1) / 2, math.sqrt(2) - 1
"""Multiples of these, modulo 1, fill the unit interval evenly."""


class Row:
    """An answer that is being written.

    Parameters
    ----------
    script : Script
        What steps give.
    text : str
        The prompt: its length of answer and its draws are its own, the same in every arm.
    asked : dict
        The body of the request.
    number : int
        Place of the request in the order of arrival.
    write : callable
        Called with the row after each of its steps.
    """

    __slots__ = (
        "_at", "_ladder", "_luck", "_random", "_rate", "_script", "drafted", "engine", "events", "finish_reason",
        "is_fresh", "left", "sent", "text", "tokens", "write",
    )  # fmt: skip

    def __init__(self, script: Script, text: str, asked: dict[str, Any], number: int, write: Callable[[Row], None]):
        least, most = script.answer_tokens
        seed = sum(text.encode())
        wanted = sum(script.tokens_per_event) or least + seed % (most - least + 1)
        limits = (asked.get("max_completion_tokens"), asked.get("max_tokens"), script.max_tokens)
        self._script, self.text, self.write = script, text, write
        self.left = min([wanted, *(int(limit) for limit in limits if limit)])
        """Tokens that are still to come."""
        self.finish_reason = "stop" if self.left == wanted else "length"
        self.engine = number % script.engines
        self.sent = 0
        """Tokens given so far."""
        self.events = 0
        """Steps that it took so far."""
        self.tokens = 0
        """Tokens of the last step."""
        self.drafted: int | None = None
        """Draft tokens of the last step; None where it had no draft."""
        self.is_fresh = True
        """Whether its prompt is still to be read: the step that does it has no draft."""
        self._at, self._luck = seed * _GOLDEN % 1.0, seed * _SILVER % 1.0
        self._random = random.Random(seed) if script.draws == "random" else None
        self.serve(script.acceptance)

    def serve(self, acceptance: tuple[Acceptance, ...]) -> None:
        """Draw by these curves from here on."""
        mine = next((entry for entry in acceptance if entry.prompt_has in self.text), Acceptance())
        self._ladder, self._rate = sorted(mine.rates), mine.draft_rate

    def step(self) -> None:
        """Take one step: sets `tokens` and `drafted`."""
        self.drafted = None
        given = 1
        if self._script.tokens_per_event:
            given = self._script.tokens_per_event[self.events]
            if not self.is_fresh:
                self.drafted = self._script.k
        elif self._ladder and not self.is_fresh and (self._rate == 1 or self._chance() < self._rate):
            self.drafted = len(self._ladder)
            given += self.drafted - bisect_right(self._ladder, self._draw())
        self.is_fresh = False
        self.tokens = tokens = given if given < self.left else self.left
        self.left -= tokens
        self.sent += tokens
        self.events += 1

    def _draw(self) -> float:
        if self._random is not None:
            return self._random.random()
        self._at = at = (self._at + _GOLDEN) % 1.0
        return at

    def _chance(self) -> float:
        if self._random is not None:
            return self._random.random()
        self._luck = luck = (self._luck + _SILVER) % 1.0
        return luck
