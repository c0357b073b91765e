"""What the rows of a step hold in a closed loop: how much context they read, how many prompts they share it with."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests as one step sees them on average.

    In a closed loop each answer that ends brings a prompt. A prompt comes whole, so that some steps hold one and most
    hold none: where passes are bound by memory without it and by arithmetic with it, their mean is not the pass of the
    mean.

    Attributes
    ----------
    context : float
        Tokens that a row has cached, mean over all row-steps, tokens.
    prompt : float
        Mean prompt, tokens; 0 leaves prefill out.
    answer : float
        Mean answer, tokens.
    """

    context: float
    prompt: float = 0.0
    answer: float = math.inf

    @property
    def prompts_per_token(self) -> float:
        """Prompt tokens that come for each token written, tokens."""
        return self.prompt / self.answer


def closed_loop(prompt: float, answer: float, cv: float = 0.0, most: float = math.inf) -> Traffic:
    """Return the traffic of a closed loop with lognormal answers.

    Parameters
    ----------
    prompt, answer : float
        Mean length of prompts and, before any cut, of answers, tokens.
    cv : float
        Standard deviation of the answers' length over its mean.
    most : float
        Length at which answers are cut, tokens.

    Returns
    -------
    Traffic
        A long answer takes many row-steps, so the mean context of a row-step is the prompt and half of
        E[length^2] / E[length].
    """
    first, second = _cut_moments(answer, cv, most)
    return Traffic(prompt + second / first / 2, prompt, first)


def _cut_moments(mean: float, cv: float, most: float) -> tuple[float, float]:
    """Return E[min(L, most)] and E[min(L, most)^2] of a lognormal L."""
    if cv == 0 or most == math.inf:
        length = min(mean, most)
        return length, length**2 * (1 + cv**2)
    from scipy.special import ndtr  # takes a third of a second, and most commands do not come here

    variance = math.log1p(cv**2)
    location = math.log(mean) - variance / 2
    spread = math.sqrt(variance)
    cut = most * float(ndtr(-math.log(most / math.exp(location)) / spread))

    def below(power: int) -> float:
        """Return the part of E[L^power] that lies below the cut."""
        moment = math.exp(power * location + power**2 * variance / 2)
        return moment * float(ndtr(math.log(most / math.exp(location + power * variance)) / spread))

    return below(1) + cut, below(2) + most * cut
