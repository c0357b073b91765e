"""One prompt."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prompt:
    """One user message of a workload.

    Attributes
    ----------
    workload : str
        ``chat``, ``completion`` or ``revision``.
    id : str
        Stable name of the prompt inside its workload (``chat/07``, ``HumanEval/12``).
    text : str
        The user message; the server applies its own chat template.
    """

    workload: str
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class PromptSet:
    """The prompts of one workload in the order in which every arm sends them.

    Attributes
    ----------
    measured : tuple[Prompt, ...]
        Shuffled once by the lab's seed; a cell that needs more starts again at the front.
    warm_up : tuple[Prompt, ...]
        What each slot sends first; never among the measured.
    """

    measured: tuple[Prompt, ...]
    warm_up: tuple[Prompt, ...]

    @property
    def sha256(self) -> str:
        """Hash of all texts in order; part of every cell's identity."""
        lines = [[prompt.id, prompt.text] for prompt in (*self.measured, *self.warm_up)]
        return hashlib.sha256(json.dumps(lines).encode()).hexdigest()
