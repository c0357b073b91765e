"""User turns that the target writes itself, from its chat template up to the user's first words."""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch

from speclab.drafters.dialogue import Dialogue
from speclab.drafters.generate import Chance, write
from speclab.drafters.llama import TargetNetwork

MOST = {"question": 48, "stub": 96}
"""Most tokens of a sampled turn."""
TOP = 50
"""Likeliest tokens among which a sampled prompt's next is drawn, at temperature 1."""


def sampled(target: TargetNetwork, dialogue: Dialogue, name: str, chosen: Sequence[str], seed: int) -> list[str]:
    """Return the user turns that the target writes after one batch of openings; the same for the same seed."""
    generator = torch.Generator().manual_seed(random.Random(f"{seed}/{name}").getrandbits(31))
    rows = write(
        target, [dialogue.opened(opening) for opening in chosen], most=MOST[name.split("-")[0]],
        stops=(dialogue.turn_ends, *dialogue.stops), chance=Chance(1.0, TOP, generator),
    )  # fmt: skip
    return [opening + dialogue.text(row.tokens[row.prompt :]) for opening, row in zip(chosen, rows, strict=True)]
