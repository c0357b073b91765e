"""Other people's measurements: fitted on one dataset or one k, the model predicts the others.

Llama 3.1 8B on one H100 (arXiv:2601.11580, Figure 1): speed-ups of EAGLE-3, EAGLE and n-gram with k = 3 at batch sizes
1, 16, 64 and 128 on two datasets, and the share of step time by part (Figure 4). The source averages speed-ups over
requests, so acceptance is taken as the mean over requests too. And vllm-project/vllm#20780: time per token at batch 1
for k = 2 to 7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pandas as pd

from speclab.model.calibration.fit import Fit, Measured, Place, fit
from speclab.model.calibration.parameters import H100_8B, Parameters
from speclab.model.calibration.price import NO_DRAFT, Draft, Parts, step, step_s
from speclab.model.calibration.traffic import Traffic, closed_loop
from speclab.model.transformers import Transformer, transformer

Method = Literal["EAGLE-3", "EAGLE", "ngram"]

TARGET = transformer("llama-3-8b")
SHAPES: dict[str, Transformer | None] = {
    "EAGLE-3": transformer("eagle3-head-8b"),
    "EAGLE": transformer("eagle-head-8b"),
    "ngram": None,
}
K = 3
FREE = ("flop_per_s", "launch_s", "lookup_hit")
UNUSED = ("row_s",)
FITTED_WITH: tuple[Method, ...] = ("EAGLE-3", "ngram")
SPREAD = 0.01
"""Relative error of a digitised speed-up, its averaging over a finite run included."""

TRAFFIC = {
    # question and answer of the first five requests of the public traces (github.com/SpecDecode-Bench/simulator)
    "GSM8K": closed_loop(117, 230, 0.4),
    # means of the vLLM paper (arXiv:2309.06180); their spread as in inference-tradeoffs-explained
    "ShareGPT": closed_loop(161.31, 337.99, 1.0),
}
"""What the rows hold: the source prints no lengths."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One published speed-up.

    Attributes
    ----------
    method, dataset : str
    batch : float
        Rows of a step.
    speed_up : float
    """

    method: Method
    dataset: str
    batch: float
    speed_up: float


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything of one source that the model is held against.

    Attributes
    ----------
    speed_ups : tuple of Figure
    tokens_per_step : dict of (method, dataset) to float
        Mean over requests.
    first_accepted : dict of str to float
        Share of all row-steps in which n-gram's first draft token was accepted, by dataset.
    """

    speed_ups: tuple[Figure, ...]
    tokens_per_step: dict[tuple[str, str], float]
    first_accepted: dict[str, float]

    def of(self, method: str, dataset: str) -> list[Figure]:
        """Return the speed-ups of one method on one dataset, by batch size."""
        found = [each for each in self.speed_ups if (each.method, each.dataset) == (method, dataset)]
        return sorted(found, key=lambda each: each.batch)


def figures(table: pd.DataFrame) -> Figures:
    """Return the figures of a table of published ones (`speclab.published.read`), its rows of arXiv:2601.11580."""
    speed_ups = table[table["finding"] == "speed_up"]
    lengths = table[table["finding"] == "tokens_per_step"]
    first = table[table["id"].str.startswith("f")]
    return Figures(
        tuple(
            Figure(row["arm"], row["workload"], float(row["concurrency"]), float(row["value"]))
            for row in speed_ups.to_dict("records")
        ),
        {(row["arm"], row["workload"]): float(row["value"]) for row in lengths.to_dict("records")},
        {row["workload"]: float(row["value"]) for row in first.to_dict("records")},
    )


def calibrated(figures: Figures, dataset: str, start: Parameters = H100_8B) -> Fit:
    """Return the parameters fitted on EAGLE-3's and n-gram's speed-ups on one dataset.

    A ratio carries no scale: bandwidth is held.
    """
    measured = [
        _measured(figures, each)
        for method in FITTED_WITH
        for each in figures.of(method, dataset)
    ]  # fmt: skip
    return fit(measured, start, FREE, f"EAGLE-3 and n-gram, k = {K}, {dataset}", exact=UNUSED)


def predicted(figures: Figures, parameters: Parameters, asked: Figure) -> float:
    """Return the model's speed-up at the place of a published one.

    EAGLE has no published acceptance here: it is taken from its own speed-up at batch 1 on the same dataset.
    """
    tokens = figures.tokens_per_step.get((asked.method, asked.dataset))
    if tokens is None:
        alone = figures.of(asked.method, asked.dataset)[0]
        # tokens per step have a say in the step's time too, a small one: two rounds settle it
        tokens = 2.0
        for _ in range(2):
            tokens = alone.speed_up / _ratio(figures, parameters, alone, tokens)
    return tokens * _ratio(figures, parameters, asked, tokens)


def parts(parameters: Parameters, method: str, batch: float, dataset: str, tokens: float, coverage: float) -> Parts:
    """Return one step of a method by part, or of the baseline."""
    draft = NO_DRAFT if method == "baseline" else Draft(K, SHAPES[method], coverage)
    return step(parameters, TARGET, batch, TRAFFIC[dataset], draft, tokens)


def coverage(figures: Figures, parameters: Parameters, method: str, dataset: str) -> float:
    """Return the share of row-steps with a draft: n-gram's is how often its first token was right, over how often
    that is so where it drafts at all.
    """  # noqa: D205
    if method != "ngram":
        return 1.0
    return min(1.0, figures.first_accepted[dataset] / parameters.lookup_hit)


def _ratio(figures: Figures, parameters: Parameters, at: Figure, tokens: float) -> float:
    """Return the baseline's step over the method's."""
    covered = coverage(figures, parameters, at.method, at.dataset)
    draft = Draft(K, SHAPES[at.method], covered)
    traffic = TRAFFIC[at.dataset]
    plain = step_s(parameters, TARGET, at.batch, traffic)
    return float(plain / step_s(parameters, TARGET, at.batch, traffic, draft, tokens))


def _measured(figures: Figures, each: Figure) -> Measured:
    def model(parameters: Parameters) -> float:
        return predicted(figures, parameters, each)

    label = f"{each.method} on {each.dataset} at batch {each.batch:g}"
    tokens = each.batch * (1 + K * (each.method != "ngram"))
    return Measured(label, each.speed_up, model, Place(each.batch, tokens, TRAFFIC[each.dataset].context), SPREAD)


@dataclass(frozen=True, slots=True)
class ByK:
    """Time per token at batch 1 for several k (vllm-project/vllm#20780).

    Attributes
    ----------
    method : str
    k : tuple of int
    tokens_per_step, time_per_output_token_ms : tuple of float
        An entry for each k.
    baseline_ms : float
        Time per token without speculation.
    """

    method: Method
    k: tuple[int, ...]
    tokens_per_step: tuple[float, ...]
    time_per_output_token_ms: tuple[float, ...]
    baseline_ms: float


def figures_by_k(table: pd.DataFrame, method: Method) -> ByK:
    """Return the figures of one method in a table of published ones, its rows of vllm-project/vllm#20780."""
    of = table[table["id"].str.startswith("k") & (table["arm"] == method)]
    lengths = of[of["finding"] == "reported_acceptance_length"].set_index("k")["value"].sort_index()
    times = of[of["finding"] == "time_per_output_token"].set_index("k")["value"].sort_index()
    baseline = table[(table["id"].str.startswith("k")) & (table["arm"] == "baseline")]["value"]
    k = tuple(int(each) for each in lengths.index)
    return ByK(method, k, tuple(lengths.astype(float)), tuple(times.astype(float)), float(baseline.iloc[0]))


def by_k(figures: ByK, start: Parameters = H100_8B, context: float = 200.0) -> tuple[Fit, dict[int, float]]:
    """Return a fit of bandwidth and launch on the baseline and k = 3, and the model's ms per token for every k.

    The context is assumed: 80 questions of MT-Bench, answers of some hundred tokens.
    """
    traffic = Traffic(context)
    at = dict(zip(figures.k, zip(figures.tokens_per_step, figures.time_per_output_token_ms, strict=True), strict=True))

    def milliseconds(parameters: Parameters, k: int) -> float:
        draft = Draft(k, SHAPES[figures.method]) if k else NO_DRAFT
        tokens = at[k][0] if k else 1.0
        return 1e3 * float(step_s(parameters, TARGET, 1, traffic, draft, tokens)) / tokens

    measured = [
        Measured("baseline", figures.baseline_ms, lambda p: milliseconds(p, 0), Place(1, 1, context), SPREAD),
        Measured(f"k = {K}", at[K][1], lambda p: milliseconds(p, K), Place(1, 1 + K, context), SPREAD),
    ]
    unused = ("row_s", "lookup_s", "lookup_hit")
    found = fit(measured, start, ("byte_per_s", "launch_s"), f"baseline and k = {K}", exact=unused)
    return found, {k: milliseconds(found.parameters, k) for k in figures.k}
