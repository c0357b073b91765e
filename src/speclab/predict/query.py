"""What a person asks, and the names that they use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Method = Literal["eagle3", "draft-model", "ngram"]

GRID = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512)
SHORT_DEVICES = {"h100": "h100-sxm", "a100": "a100-sxm", "h200": "h200-sxm"}
SHORT_MODELS = {"llama-3.1-8b": "llama-3-8b", "llama-3.1-70b": "llama-3-70b", "llama-3.3-70b": "llama-3-70b"}
"""Names that people use, for the shapes and devices that they are."""

DRAFTERS: dict[tuple[str, str], str] = {
    ("eagle3", "llama-3-8b"): "eagle3-head-8b",
    ("eagle3", "llama-3-70b"): "eagle3-head-70b",
    ("eagle3", "smollm2-135m"): "eagle3-head-135m",
    ("draft-model", "llama-3-8b"): "llama-3.2-1b",
    ("draft-model", "llama-3-70b"): "llama-3.2-1b",
}
"""The drafter of a method and target where none is named."""

CONTEXT = 500.0
"""Tokens that a row has cached where a question does not say."""

METHODS: tuple[Method, ...] = get_args(Method)


@dataclass(frozen=True)
class Query:
    """What a person asks; the options of ``speclab predict`` but for the calibration.

    Attributes
    ----------
    device, model : str, optional
        Those that the calibration was made on where None.
    k : int
    acceptance : tuple of float
        Marginal, by draft position.
    method : {'eagle3', 'draft-model', 'ngram'}
    drafter : str, optional
        Shape of the network that drafts; the method's own for the model where None.
    drafting_ms : float, optional
        What a draft position adds at one request in flight, ms; the calibration's where None.
    draft_rate : float
        Share of row-steps with a draft.
    context : float, optional
        Tokens that a row has cached, mean over its steps; `CONTEXT` where neither this nor lengths are given.
    prompt, answer : float, optional
        Mean lengths in a closed loop, tokens; they stand for a context, and their prompts share the steps.
    concurrency : tuple of int, optional
        Requests in flight to answer for; `GRID` as far as memory goes where None.
    """

    device: str | None = None
    model: str | None = None
    k: int = 3
    acceptance: tuple[float, ...] = ()
    method: Method = "eagle3"
    drafter: str | None = None
    drafting_ms: float | None = None
    draft_rate: float = 1.0
    context: float | None = None
    prompt: float | None = None
    answer: float | None = None
    concurrency: tuple[int, ...] | None = None
