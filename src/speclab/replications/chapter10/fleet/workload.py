"""The requests sent to a fleet, and when: sessions that arrive at random, each of one turn or several."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from speclab.config import Chosen


class Length(Chosen):
    """A lognormal number of tokens, rounded and cut to 1..`most`.

    Attributes
    ----------
    mean, cv : float
        Mean and coefficient of variation before the cut; cv 0 is the mean itself.
    most : int
        Longest.
    """

    mean: float = Field(ge=1)
    cv: float = Field(ge=0)
    most: int = Field(default=2**31, ge=1)

    def draw(self, source: random.Random) -> int:
        """Return one length."""
        if self.cv == 0:
            return min(self.most, round(self.mean))
        variance = math.log(1 + self.cv**2)
        drawn = source.lognormvariate(math.log(self.mean) - variance / 2, math.sqrt(variance))
        return min(self.most, max(1, round(drawn)))


class FleetWorkload(Chosen):
    """Sessions that arrive as a Poisson process.

    Attributes
    ----------
    name : str
        How the book names it.
    new_input, output : Length
        Tokens that a turn adds, and tokens of its answer.
    turns : int
        Turns of a session; each but the first is sent some time after the answer to the one before it, and its
        prompt holds the whole conversation.
    think_s : float
        Mean of that time, exponential, s.
    system_prompts, system_prompt : int
        How many system prompts there are, and their length in tokens; a session begins with one of them.
    ttft_slo_s, tpot_slo_s : float
        SLOs of TTFT and TPOT, s.
    """

    name: str
    new_input: Length
    output: Length
    turns: int = Field(default=1, ge=1)
    think_s: float = Field(default=0.0, ge=0)
    system_prompts: int = Field(default=0, ge=0)
    system_prompt: int = Field(default=0, ge=0)
    ttft_slo_s: float = Field(default=math.inf, gt=0, allow_inf_nan=True)
    tpot_slo_s: float = Field(default=math.inf, gt=0, allow_inf_nan=True)

    @property
    def session_s(self) -> float:
        """Length of a session that just meets its SLOs, s."""
        return self.turns * (self.think_s + self.ttft_slo_s + self.output.mean * self.tpot_slo_s)

    def sessions(self, rate: float) -> int:
        """Return how many sessions a run at `rate` sessions/s takes.

        400 with one turn; with several, as many as arrive in four session lengths, at least 200.
        """
        return 400 if self.turns == 1 else max(200, math.ceil(rate * 4 * self.session_s))


@dataclass(frozen=True, slots=True)
class Requests:
    """The requests of one run, turns of a session side by side; all arrays have shape (requests,).

    Attributes
    ----------
    prompt, output : ndarray of int
        Tokens; a turn's prompt holds the session so far.
    arrival_s : ndarray of float
        When a session's first turn arrives, s; NaN for later turns, which wait for an answer.
    think_s : ndarray of float
        How long after the answer before it a later turn is sent, s; 0 for the first.
    turns : int
        Turns of each session.
    """

    prompt: NDArray[np.int64]
    output: NDArray[np.int64]
    arrival_s: NDArray[np.float64]
    think_s: NDArray[np.float64]
    turns: int = field(default=1)

    def __len__(self) -> int:
        return len(self.prompt)


def draw(workload: FleetWorkload, rate: float, seed: int, sessions: int | None = None) -> Requests:
    """Return the requests of one run.

    Parameters
    ----------
    workload : FleetWorkload
        Their lengths, turns and system prompts.
    rate : float
        Sessions per second.
    seed : int
        Seed of Python's generator; the draws are those of the public simulator, in its order.
    sessions : int, optional
        How many; by default what the workload needs at this rate.
    """
    source = random.Random(seed)
    prompts, outputs, arrivals, thinking = [], [], [], []
    clock_s = 0.0
    for _ in range(workload.sessions(rate) if sessions is None else sessions):
        clock_s += source.expovariate(rate)
        history = 0
        if workload.system_prompts:
            source.randrange(workload.system_prompts)  # which one matters to a prefix cache only
            history = workload.system_prompt
        for turn in range(workload.turns):
            prompt = history + workload.new_input.draw(source)
            output = workload.output.draw(source)
            later = turn > 0 and workload.think_s > 0
            thinking.append(workload.think_s * source.expovariate(1) if later else 0.0)
            arrivals.append(math.nan if turn else clock_s)
            prompts.append(prompt)
            outputs.append(output)
            history = prompt + output
    return Requests(
        np.array(prompts, dtype=np.int64),
        np.array(outputs, dtype=np.int64),
        np.array(arrivals),
        np.array(thinking),
        workload.turns,
    )
