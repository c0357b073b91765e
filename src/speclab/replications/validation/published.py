"""Other people's measurements: fitted on one dataset or one k, the model predicts the others.

Llama 3.1 8B on one H100 (arXiv:2601.11580, Figure 1): speed-ups of EAGLE-3, EAGLE and n-gram with k = 3 at batch sizes
1, 16, 64 and 128 on two datasets, and the share of step time by part (Figure 4). The source averages speed-ups over
requests, so acceptance is taken as the mean over requests too. And vllm-project/vllm#20780: time per token at batch 1
for k = 2 to 7.
"""

from __future__ import annotations

from collections.abc import Sequence

from speclab.predict.fit import Fit, Measured, Place, fit
from speclab.predict.parameters import H100_8B, Parameters
from speclab.predict.step_time import ALL, NO_DRAFT, Draft, ModelOptions, Parts, step, step_s
from speclab.predict.traffic import Traffic
from speclab.replications.validation.published_figures import TRAFFIC, ByK, Figure, Figures, K, Method
from speclab.roofline.transformers import Transformer, transformer

TARGET = transformer("llama-3-8b")
SHAPES: dict[str, Transformer | None] = {
    "EAGLE-3": transformer("eagle3-head-8b"),
    "EAGLE": transformer("eagle-head-8b"),
    "ngram": None,
}
FREE = ("flop_per_s", "launch_s", "lookup_hit")
UNUSED = ("row_s",)
FITTED_WITH: tuple[Method, ...] = ("EAGLE-3", "ngram")
SPREAD = 0.01
"""Relative error of a digitised speed-up, its averaging over a finite run included."""


def calibrated(
    figures: Figures,
    dataset: str,
    start: Parameters = H100_8B,
    options: ModelOptions = ALL,
    free: Sequence[str] = FREE,
) -> Fit:
    """Return the parameters fitted on EAGLE-3's and n-gram's speed-ups on one dataset.

    A ratio carries no scale: bandwidth is held.
    """
    measured = [
        _measured(figures, figure, options)
        for method in FITTED_WITH
        for figure in figures.of(method, dataset)
    ]  # fmt: skip
    return fit(measured, start, free, f"EAGLE-3 and n-gram, k = {K}, {dataset}", exact=UNUSED)


def predicted(figures: Figures, parameters: Parameters, figure: Figure, options: ModelOptions = ALL) -> float:
    """Return the model's speed-up at the place of a published one.

    EAGLE has no published acceptance here: it is taken from its own speed-up at batch 1 on the same dataset.
    """
    tokens = figures.tokens_per_step.get((figure.method, figure.dataset))
    if tokens is None:
        alone = figures.of(figure.method, figure.dataset)[0]
        # the step's time depends on tokens per step too, weakly: two rounds settle it
        tokens = 2.0
        for _ in range(2):
            tokens = alone.speed_up / _ratio(figures, parameters, alone, tokens, options)
    return tokens * _ratio(figures, parameters, figure, tokens, options)


def parts(
    parameters: Parameters,
    method: str,
    batch: float,
    dataset: str,
    tokens: float,
    draft_rate: float,
    options: ModelOptions = ALL,
) -> Parts:
    """Return one step of a method by part, or of the baseline."""
    draft = NO_DRAFT if method == "baseline" else Draft(K, SHAPES[method], draft_rate)
    return step(parameters, TARGET, batch, TRAFFIC[dataset], draft, tokens, options)


def draft_rate(figures: Figures, parameters: Parameters, method: str, dataset: str) -> float:
    """Return the share of row-steps with a draft: n-gram's is how often its first token was right, over how often
    it is right when it drafts at all.
    """  # noqa: D205
    if method != "ngram":
        return 1.0
    return min(1.0, figures.first_accepted[dataset] / parameters.lookup_hit)


def _ratio(figures: Figures, parameters: Parameters, figure: Figure, tokens: float, options: ModelOptions) -> float:
    """Return the baseline's step over the method's."""
    rate = draft_rate(figures, parameters, figure.method, figure.dataset)
    draft = Draft(K, SHAPES[figure.method], rate)
    traffic = TRAFFIC[figure.dataset]
    plain = step_s(parameters, TARGET, figure.batch, traffic, options=options)
    return float(plain / step_s(parameters, TARGET, figure.batch, traffic, draft, tokens, options))


def _measured(figures: Figures, figure: Figure, options: ModelOptions) -> Measured:
    def model(parameters: Parameters) -> float:
        return predicted(figures, parameters, figure, options)

    label = f"{figure.method} on {figure.dataset} at batch {figure.batch:g}"
    tokens = figure.batch * (1 + K * (figure.method != "ngram"))
    return Measured(label, figure.speed_up, model, Place(figure.batch, tokens, TRAFFIC[figure.dataset].context), SPREAD)


def by_k(figures: ByK, start: Parameters = H100_8B, context: float = 200.0) -> tuple[Fit, dict[int, float]]:
    """Return a fit of bandwidth and launch on the baseline and k = 3, and the model's ms per token for every k.

    The context is assumed: 80 questions of MT-Bench, answers of a few hundred tokens.
    """
    traffic = Traffic(context)
    by_k_figures = dict(
        zip(figures.k, zip(figures.tokens_per_step, figures.time_per_output_token_ms, strict=True), strict=True)
    )

    def milliseconds(parameters: Parameters, k: int) -> float:
        draft = Draft(k, SHAPES[figures.method]) if k else NO_DRAFT
        tokens = by_k_figures[k][0] if k else 1.0
        return 1e3 * float(step_s(parameters, TARGET, 1, traffic, draft, tokens)) / tokens

    measured = [
        Measured("baseline", figures.baseline_ms, lambda p: milliseconds(p, 0), Place(1, 1, context), SPREAD),
        Measured(f"k = {K}", by_k_figures[K][1], lambda p: milliseconds(p, K), Place(1, 1 + K, context), SPREAD),
    ]
    unused = ("row_s", "lookup_s", "lookup_hit")
    calibration = fit(measured, start, ("byte_per_s", "launch_s"), f"baseline and k = {K}", exact=unused)
    return calibration, {k: milliseconds(calibration.parameters, k) for k in figures.k}
