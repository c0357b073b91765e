"""What simulated requests will write: how long each answer is, and in which bursts it comes.

A request's bursts do not depend on who else is being served, so they are drawn whole when it starts. Streams are per
prompt: the nth time that a prompt is sent, it gets the same draws whatever the concurrency. A real server at
temperature 0 would repeat its text each time; here repeats are drawn anew, so that an interval over row-steps is an
honest one.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from speclab.lab import Answers, Sampling
from speclab.roofline.speculation import accepted_counts

FinishReason = Literal["stop", "length"]

ROWS, CONTEXT, DRAFTED, DRAFTED_CONTEXT, GENERATED, PROMPT, FIRST_POSITION = range(7)
"""Columns of `SimulatedAnswer.steps`; from the last on, drafts accepted at each position."""


@dataclass(frozen=True, slots=True)
class SimulatedAnswer:
    """One request's answer, step by step.

    Attributes
    ----------
    event_tokens : ndarray of int16, shape (n,)
        Tokens delivered by each step, from the one that ends the prefill (1 token).
    steps : ndarray of int64, shape (n, 6 + k)
        What the request adds to each step's totals; columns as named above.
    finish_reason : {'stop', 'length'}
    """

    event_tokens: NDArray[np.int16]
    steps: NDArray[np.int64]
    finish_reason: FinishReason


def rng(*key: object) -> np.random.Generator:
    """Return a generator that is a function of its key only, on every machine."""
    digest = hashlib.sha256("/".join(map(str, key)).encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16])))


def answer_length(answers: Answers, seed: int, workload: str, prompt_id: str) -> int:
    """Return the length of a prompt's answer before any cut, tokens: the same in every arm, since greedy text is.

    Lognormal with the mean and coefficient of variation given, rounded, at least 1.
    """
    variance = math.log1p(answers.cv**2)
    location = math.log(answers.mean_tokens) - variance / 2
    draw = rng("answer length", seed, workload, prompt_id).lognormal(location, math.sqrt(variance))
    return max(1, round(draw))


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes the answers of one arm and workload.

    Attributes
    ----------
    answers : Answers
        Distribution of their length.
    seed : int
        The lab's.
    arm, workload, seed_key : str
        What else the draws of acceptance depend on.
    marginal : tuple of float
        Marginal acceptance by draft position, one for each of k; empty in the baseline.
    draft_rate : float
        Share of row-steps with a draft.
    """

    answers: Answers
    seed: int
    arm: str
    workload: str
    seed_key: str = ""
    marginal: tuple[float, ...] = ()
    draft_rate: float = 1.0
    _sources: dict[str, tuple[int, np.random.Generator]] = field(default_factory=dict, init=False)
    """Each prompt's answer length and stream of draws, made when it is first sent."""

    def write(self, prompt_id: str, prompt_tokens: int, sampling: Sampling, room: int | None = None) -> SimulatedAnswer:
        """Return the next answer to a prompt.

        Parameters
        ----------
        prompt_id, prompt_tokens : str, int
            The prompt's name and length.
        sampling : Sampling
            Cuts the answer at its `max_tokens`; with `ignore_eos` every answer has that length.
        room : int, optional
            Tokens that the server's context leaves for it.
        """
        longest = min(sampling.max_tokens, room) if room is not None else sampling.max_tokens
        wanted, stream = self._source(prompt_id)
        cut = sampling.ignore_eos or wanted > longest
        tokens = longest if cut else wanted
        # always as many numbers, so that the prompt's next answer gets the same ones however long this one is
        uniforms = stream.random(sampling.max_tokens)[: tokens - 1]
        event_tokens, steps = self._steps(prompt_tokens, tokens, uniforms)
        return SimulatedAnswer(event_tokens, steps, "length" if cut else "stop")

    def _source(self, prompt_id: str) -> tuple[int, np.random.Generator]:
        if prompt_id not in self._sources:
            length = answer_length(self.answers, self.seed, self.workload, prompt_id)
            stream = rng("acceptance", self.seed, self.arm, self.workload, self.seed_key, prompt_id)
            self._sources[prompt_id] = length, stream
        return self._sources[prompt_id]

    def _steps(
        self, prompt_tokens: int, tokens: int, uniforms: NDArray[np.float64]
    ) -> tuple[NDArray[np.int16], NDArray[np.int64]]:
        k = len(self.marginal)
        drafted, accepted = accepted_counts(uniforms, self.marginal, self.draft_rate)
        written = 1 + np.cumsum(accepted + 1)  # the prefill's token, then the bursts
        n = int(np.searchsorted(written, tokens)) + 1 if tokens > 1 else 0  # decode steps until the last token
        drafted, accepted, written = drafted[:n], accepted[:n], written[:n]
        before = np.concatenate(([1], written[:-1])) if n else written

        event_tokens = np.ones(n + 1, dtype=np.int16)
        event_tokens[1:] = np.minimum(written, tokens) - before

        steps = np.zeros((n + 1, FIRST_POSITION + k), dtype=np.int64)
        steps[0, PROMPT] = prompt_tokens
        steps[:, GENERATED] = event_tokens
        steps[1:, ROWS] = 1
        steps[1:, CONTEXT] = prompt_tokens + before
        if k:
            steps[1:, DRAFTED] = drafted
            steps[1:, DRAFTED_CONTEXT] = drafted * steps[1:, CONTEXT]
            # counted before the answer's end cuts the burst, as in vLLM's scheduler: in vllm#26191 drafts and accepted
            # tokens together, 17024, are more than the 16990 tokens written
            steps[1:, FIRST_POSITION:] = accepted[:, None] > np.arange(k)
        return event_tokens, steps
