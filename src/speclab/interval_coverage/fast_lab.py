"""A lab in closed form: its true speed-up and crossover can be written down, and a cell of it takes milliseconds.

All rows of a batch of b step together; a step takes ``a + c b`` milliseconds, with noise that is correlated over time;
an answer has its own acceptance for all of its steps, as texts do. Nothing else happens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.signal import lfilter

from speclab.findings.crossover import crossover
from speclab.lab import BASELINE
from speclab.metrics.summary import KEYS

ARM = "speculates"
SOURCE = "simulated (in closed form)"


_NOT_MADE = ("answers", "answer_tokens", "answer_ms", "answer_rates", "drafts", "accepted")


@dataclass(frozen=True, slots=True)
class FastLab:
    """The true values of a lab, and the sources of its noise.

    Attributes
    ----------
    concurrencies : tuple of int
        Requests in flight.
    baseline_ms, arm_ms : tuple of float
        A step takes the first number plus the second for each row, ms.
    k, acceptance : int, float
        Draft tokens of a step; the share of them that is accepted, in the mean over answers.
    texts_differ : float
        0: all answers are accepted alike; towards 1: nearly all or nearly nothing of each.
    steps_per_answer : int
        Steps for which an answer keeps its own acceptance.
    jitter, remembers_s : float
        Standard deviation of a step time's logarithm, and its correlation time (to 1/e), s.
    drift : float
        Standard deviation of the logarithm of a cell's overall speed, which changes between windows and not within one.
    window_s, repeats : float, int
        Length of a cell's window, and how many times each cell is run.
    """

    concurrencies: tuple[int, ...] = (1, 4, 16, 64)
    baseline_ms: tuple[float, float] = (20.0, 0.4)
    arm_ms: tuple[float, float] = (22.0, 1.0)
    k: int = 2
    acceptance: float = 0.3
    texts_differ: float = 0.2
    steps_per_answer: int = 60
    jitter: float = 0.10
    remembers_s: float = 0.3
    drift: float = 0.0
    window_s: float = 20.0
    repeats: int = 1

    @property
    def true_speed_up(self) -> NDArray[np.float64]:
        """True speed-up at each concurrency: tokens per step over the ratio of the step times, shape (points,)."""
        b = np.asarray(self.concurrencies, dtype=np.float64)
        ratio: NDArray[np.float64] = (self.arm_ms[0] + self.arm_ms[1] * b) / (
            self.baseline_ms[0] + self.baseline_ms[1] * b
        )
        return (1 + self.k * self.acceptance) / ratio

    @property
    def true_crossover(self) -> float | None:
        """Where the true speed-ups cross 1, interpolated as a measured curve is; None if they do not."""
        return crossover(self.concurrencies, self.true_speed_up).value

    def tables(self, seed: int, blocks: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the cells and blocks of one lab for one seed, as `speclab.metrics.summary` has them."""
        rng = np.random.default_rng([seed, 90])
        cells, parts = [], []
        for arm, cost in ((BASELINE, self.baseline_ms), (ARM, self.arm_ms)):
            for concurrency in self.concurrencies:
                for repeat in range(self.repeats):
                    part = self._cell(rng, concurrency, cost[0] + cost[1] * concurrency, arm == ARM, blocks)
                    place: tuple[str | int, ...] = (arm, "chat", concurrency, repeat, SOURCE)
                    cells.append(dict(zip(KEYS, place, strict=True)) | _metrics(part))
                    for key, value in zip(KEYS, place, strict=True):
                        part[key] = value
                    parts.append(part)
        return pd.DataFrame(cells).assign(status="ok", failed_checks=None), pd.concat(parts, ignore_index=True)

    def _cell(self, rng: np.random.Generator, rows: int, step_ms: float, speculates: bool, blocks: int) -> pd.DataFrame:
        steps = int(2.5 * self.window_s * 1e3 / step_ms) + 1
        memory = np.exp(-step_ms / 1e3 / self.remembers_s)
        took_s = step_ms / 1e3 * _lognormal(_remembering(rng, steps, memory), self.jitter)
        took_s *= _lognormal(rng.standard_normal(1), self.drift)
        ends_s = np.cumsum(took_s)
        inside = ends_s < self.window_s
        tokens = self._tokens(rng, len(ends_s), rows, speculates)
        block = (ends_s[inside] / self.window_s * blocks).astype(int)

        def summed(values: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.bincount(block, weights=values[inside], minlength=blocks).astype(np.float64)

        return pd.DataFrame(
            {
                "block": np.arange(blocks),
                "seconds": self.window_s / blocks,
                "tokens": summed(tokens),
                "decode_tokens": summed(tokens),
                "steps": summed(np.full(len(ends_s), float(rows))),
                "gap_ms": summed(rows * took_s * 1e3),
                **dict.fromkeys(
                    ("answers", "answer_tokens", "answer_ms", "answer_rates", "drafts", "accepted"), np.nan
                ),
            }
        )

    def _tokens(self, rng: np.random.Generator, steps: int, rows: int, speculates: bool) -> NDArray[np.float64]:
        """Return the tokens of each step, all rows together, shape (steps,)."""
        if not speculates:
            return np.full(steps, float(rows))
        # each row is somewhere inside an answer when the window begins
        age = np.arange(steps)[:, None] + rng.integers(self.steps_per_answer, size=rows)
        answer = age // self.steps_per_answer
        weight = (1 - self.texts_differ) / max(self.texts_differ, 1e-9)
        of_answer = rng.beta(
            self.acceptance * weight, (1 - self.acceptance) * weight, size=(int(answer.max()) + 1, rows)
        )
        share = np.take_along_axis(of_answer, answer, axis=0)
        tokens: NDArray[np.float64] = (1 + rng.binomial(self.k, share)).sum(axis=1).astype(np.float64)
        return tokens


def _metrics(part: pd.DataFrame) -> dict[str, float | None]:
    sums = part.sum()
    return {
        "system_throughput": sums["tokens"] / sums["seconds"],
        "step_time": sums["gap_ms"] / sums["steps"],
        "tokens_per_step": sums["decode_tokens"] / sums["steps"],
        "ms_per_accepted_token": sums["gap_ms"] / sums["decode_tokens"],
        "user_throughput": None,
        "time_per_output_token": None,
        "reported_acceptance_length": None,
    }


def _remembering(rng: np.random.Generator, steps: int, memory: float) -> NDArray[np.float64]:
    """Return a stationary series of unit variance in which each value keeps `memory` of the one before it."""
    fresh = rng.standard_normal(steps) * np.sqrt(1 - memory**2)
    fresh[0] = rng.standard_normal()
    series: NDArray[np.float64] = lfilter([1.0], [1.0, -memory], fresh)
    return series


def _lognormal(normal: NDArray[np.float64], deviation: float) -> NDArray[np.float64]:
    """Return factors whose mean is 1."""
    factors: NDArray[np.float64] = np.exp(deviation * normal - deviation**2 / 2)
    return factors
