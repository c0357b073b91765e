"""The points that are timed: parts of a step by rows, positions and context, most useful first."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Literal

Part = Literal["step", "head", "sampling"]

MOST_TOKENS = 1024
ROWS = tuple(2**power for power in range(11))
CONTEXTS = (256, 1024, 4096)
POSITIONS = (1, 4, 2, 8)
"""Decoding, then verifying 3 drafts, 1 and 7."""
CORE_ROWS, CORE_POSITIONS, CORE_CONTEXTS = (1, 8, 64), (1, 4), (256, 1024)
PART_TOKENS = (1, 64, 256, 4, 16, 1024)
"""Tokens at which the LM head, and sampling, are timed by themselves; the first three belong to the core."""


@dataclass(frozen=True, slots=True)
class Point:
    """One point to time.

    Attributes
    ----------
    part : {'step', 'head', 'sampling'}
        The whole pass (LM head included, sampling not), the LM head by itself, or the choice of the likeliest token.
    rows, positions, context : int
        Rows of the batch, new positions of each, and tokens that each has cached before them.
    """

    part: Part
    rows: int
    positions: int
    context: int

    @property
    def tokens(self) -> int:
        """New positions of all rows together."""
        return self.rows * self.positions

    @property
    def kv_tokens(self) -> int:
        """Cached tokens of all rows together, the new ones included."""
        return self.rows * (self.context + self.positions) if self.part == "step" else 0

    @property
    def attended(self) -> float:
        """Pairs of a query and a key, as in `speclab.roofline.forward_pass`."""
        if self.part != "step":
            return 0.0
        return self.rows * self.positions * (2 * self.context + self.positions + 1) / 2


SCOUTS = (Point("step", 1, 1, 256), Point("step", 8, 4, 256))
"""Timed before all others: what the rest will take is estimated from them."""


def core(*, sampling: bool = False) -> tuple[Point, ...]:
    """Return what every probe times, the scouts first, then by rising tokens."""
    steps = [Point("step", *size) for size in product(CORE_ROWS, CORE_POSITIONS, CORE_CONTEXTS)]
    rest = [point for point in steps if point not in SCOUTS] + _parts(PART_TOKENS[:3], sampling)
    return (*SCOUTS, *sorted(rest, key=_size))


def beyond(*, sampling: bool = False) -> tuple[Point, ...]:
    """Return what is timed in addition while there is time: all batches at the shortest context, then longer contexts.

    Within that, decoding and verifying three drafts come before other numbers of positions.
    """
    known = set(core(sampling=sampling))
    candidates = [Point("step", *size) for size in product(ROWS, POSITIONS, CONTEXTS)]
    steps = [point for point in candidates if point.tokens <= MOST_TOKENS and point not in known]
    ranked = sorted(steps, key=lambda point: (POSITIONS.index(point.positions) > 1, point.context, _size(point)))
    return (*_parts(PART_TOKENS[3:], sampling), *ranked)


def _parts(tokens: tuple[int, ...], sampling: bool) -> list[Point]:
    parts: tuple[Part, ...] = ("head", "sampling") if sampling else ("head",)
    return [Point(part, count, 1, 0) for count in tokens for part in parts]


def _size(point: Point) -> tuple[int, int]:
    return point.tokens, point.kv_tokens
