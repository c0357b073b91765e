"""Keep what the drafters are judged on out of what they learn from."""

from __future__ import annotations

import re
from collections.abc import Iterable

RUN = 13
"""Words in a row that two texts may not share."""
SHORTEST = 6
"""A short text is recognised by half its words, but by no fewer than this."""


def words(text: str) -> tuple[str, ...]:
    """Return a text's words and numbers in lower case, without anything between them."""
    return tuple(re.findall(r"[a-z0-9]+", text.lower()))


class Judged:
    """Texts that a drafter is judged on, recognised in other texts by a shared run of words.

    Parameters
    ----------
    texts : iterable of str
        Each is cut into all its runs of `RUN` words; a text of fewer than twice as many into runs of half its length.
    """

    def __init__(self, texts: Iterable[str]):
        self._whole: set[tuple[str, ...]] = set()
        self._runs: dict[int, set[tuple[str, ...]]] = {}
        for text in texts:
            text_words = words(text)
            self._whole.add(text_words)
            length = min(RUN, max(SHORTEST, (len(text_words) + 1) // 2))
            self._runs.setdefault(length, set()).update(_runs(text_words, length))

    def shares(self, text: str) -> bool:
        """Whether a text is one of them, or has a run of words in common with one."""
        text_words = words(text)
        return text_words in self._whole or any(
            run in runs for length, runs in self._runs.items() for run in _runs(text_words, length)
        )


def _runs(words: tuple[str, ...], length: int) -> Iterable[tuple[str, ...]]:
    return (words[start : start + length] for start in range(len(words) - length + 1))
