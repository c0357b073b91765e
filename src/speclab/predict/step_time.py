"""What one step takes with calibrated parameters, by part, for any number of rows at once.

It times the operations and bytes of `speclab.roofline.forward_pass`, and adds what a roofline leaves out: a smooth
corner between its two limits, host time, drafting's launches, the draft's first pass over all verified positions,
prompts that share the step, padding to the sizes of captured graphs. Each can be left out, to see what it is worth
(`ModelOptions`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from speclab.predict.parameters import Parameters
from speclab.predict.traffic import Traffic
from speclab.roofline.forward_pass import work
from speclab.roofline.transformers import Transformer

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Draft:
    """How a step's rows are drafted for; the default is the baseline.

    Attributes
    ----------
    k : int
        Draft positions.
    shape : Transformer, optional
        The network that drafts; None where drafts are looked up in the text.
    draft_rate : float
        Share of row-steps that have a draft.
    launch_s : float, optional
        Time of one draft position beside its pass, s; the parameters' where None.
    """

    k: int = 0
    shape: Transformer | None = None
    draft_rate: float = 1.0
    launch_s: float | None = None


NO_DRAFT = Draft()


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What is left out of a plain roofline, each of which a model may leave out too.

    Attributes
    ----------
    prefill : bool
        Prompts of the closed loop share the steps.
    context : bool
        Attention reads the context.
    drafting_grows : bool
        Draft passes are timed for the rows that they hold; else as for one row.
    first_pass : bool
        A draft's first pass runs over all positions that the step verified, to cache them; else over one a row.
    captured : tuple of int
        Sizes, in tokens, to which a step is padded; larger steps are not. Empty pads none.
    eager : bool
        Without captured graphs a pass pays launches by the layer: a draft position pays the step's overhead by its
        layers over the target's, besides its own launch.
    launches_hide : bool
        The host launches drafts while the device still verifies: what the target's pass takes longer than for one row
        hides as much of the launches.
    """

    prefill: bool = True
    context: bool = True
    drafting_grows: bool = True
    first_pass: bool = True
    captured: tuple[int, ...] = ()
    eager: bool = False
    launches_hide: bool = False


ALL = ModelOptions()


@dataclass(frozen=True, slots=True)
class Parts:
    """One step's time by part, s; arrays over rows.

    Attributes
    ----------
    verify_s, drafting_s, sampling_s, other_s : ndarray
        The target's pass, the draft's positions, sampling over the vocabulary, and the rest.
    """

    verify_s: Floats
    drafting_s: Floats
    sampling_s: Floats
    other_s: Floats
    total_s: Floats = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total_s", self.verify_s + self.drafting_s + self.sampling_s + self.other_s)


def step(
    parameters: Parameters,
    target: Transformer,
    rows: ArrayLike,
    traffic: Traffic,
    draft: Draft = NO_DRAFT,
    tokens_per_step: float = 1.0,
    options: ModelOptions = ALL,
) -> Parts:
    """Return what a step takes.

    Parameters
    ----------
    parameters : Parameters
        Of the device and server.
    target : Transformer
        The model that is served.
    rows : array_like
        Rows that write tokens.
    traffic : Traffic
        Their context and prompts.
    draft : Draft
        Who drafts for them.
    tokens_per_step : float
        Tokens that a row keeps of a step, mean over all row-steps.
    options : ModelOptions
        What to leave out.

    Returns
    -------
    Parts
        Arrays in the shape of `rows`.
    """
    batch = np.asarray(rows, dtype=np.float64)
    none = np.zeros_like(batch)
    if not options.prefill or not traffic.prompt:
        return _step(parameters, target, batch, none, traffic, draft, tokens_per_step, options)
    # a row sees the prompts of the others; they come independently, so that exp(-mean) of the steps hold none
    mean = np.maximum(batch - 1, 0) * tokens_per_step / traffic.answer
    share = -np.expm1(-mean)
    each = traffic.prompt * np.divide(mean, share, out=np.ones_like(mean), where=share > 0)
    with_prompts, without = (
        _step(parameters, target, batch, prompts, traffic, draft, tokens_per_step, options) for prompts in (each, none)
    )
    return _mixed(share, with_prompts, without)


def _step(
    parameters: Parameters,
    target: Transformer,
    batch: Floats,
    prompts: Floats,
    traffic: Traffic,
    draft: Draft,
    tokens_per_step: float,
    options: ModelOptions,
) -> Parts:
    """Return what a step takes that prefills `prompts` tokens."""
    written = batch * tokens_per_step
    context = traffic.context * options.context
    positions = 1 + draft.k * draft.draft_rate
    verify = _pass_s(parameters, target, batch * positions, prompts, batch, positions, context, options.captured)
    host = parameters.overhead_s + parameters.row_s * batch + parameters.token_s * written
    sampling = parameters.position_s * batch * positions
    if draft.shape is None:
        lookups = parameters.lookup_s * batch if draft.k else np.zeros_like(batch)
        return Parts(verify, lookups, sampling, host)
    drafting = _drafting_s(parameters, draft, batch, prompts, context, positions, options)
    if options.eager:
        drafting = drafting + draft.k * parameters.overhead_s * draft.shape.layers / target.layers
    if options.launches_hide:
        one, none = np.ones_like(batch), np.zeros_like(batch)
        alone = _pass_s(parameters, target, one * positions, none, one, positions, context, ())
        launches = draft.k * (parameters.launch_s if draft.launch_s is None else draft.launch_s)
        drafting = drafting - np.clip(verify - alone, 0, launches)
    return Parts(verify, drafting, sampling, host)


def _mixed(share: Floats, some: Parts, others: Parts) -> Parts:
    """Return the mean of two kinds of steps, `share` of them of the first."""
    return Parts(
        share * some.verify_s + (1 - share) * others.verify_s,
        share * some.drafting_s + (1 - share) * others.drafting_s,
        share * some.sampling_s + (1 - share) * others.sampling_s,
        share * some.other_s + (1 - share) * others.other_s,
    )


def step_s(
    parameters: Parameters,
    target: Transformer,
    rows: ArrayLike,
    traffic: Traffic,
    draft: Draft = NO_DRAFT,
    tokens_per_step: float = 1.0,
    options: ModelOptions = ALL,
) -> Floats:
    """Return the time of a step, s; as `step`, all parts together."""
    return step(parameters, target, rows, traffic, draft, tokens_per_step, options).total_s


def launch_s(
    parameters: Parameters,
    target: Transformer,
    drafter: Transformer,
    k: int,
    position_s: float,
    traffic: Traffic,
    tokens_per_step: float,
    rows: float = 1.0,
) -> float:
    """Return the launch part of a draft position, s, from what k positions were measured to add to a step.

    Parameters
    ----------
    position_s : float
        Step with drafts less step without, over k, at `rows` rows, s.
    tokens_per_step : float
        Tokens that a row kept of a step with drafts.

    Returns
    -------
    float
        Negative where the model's own passes already take longer than what was measured.
    """
    bare = Draft(k, drafter, launch_s=0.0)
    with_drafts = step_s(parameters, target, rows, traffic, bare, tokens_per_step)
    added = float(with_drafts - step_s(parameters, target, rows, traffic))
    return position_s - added / k


def _drafting_s(
    parameters: Parameters,
    draft: Draft,
    batch: Floats,
    prompts: Floats,
    context: float,
    positions: float,
    options: ModelOptions,
) -> Floats:
    assert draft.shape is not None
    if not options.drafting_grows:
        batch, prompts = np.ones_like(batch), np.zeros_like(prompts)
    launch = parameters.launch_s if draft.launch_s is None else draft.launch_s
    sampled = draft.shape.output_vocabulary or draft.shape.vocabulary
    sampling = parameters.position_s * batch * sampled / draft.shape.vocabulary
    first = positions if options.first_pass else 1.0
    total = _pass_s(parameters, draft.shape, batch * first, prompts, batch, first, context, ())
    later = _pass_s(parameters, draft.shape, batch, np.zeros_like(prompts), batch, 1.0, context, ())
    return total + (draft.k - 1) * later + draft.k * (launch + sampling)


def _pass_s(
    parameters: Parameters,
    shape: Transformer,
    tokens: Floats,
    prompts: Floats,
    batch: Floats,
    positions: float,
    context: float,
    captured: tuple[int, ...],
) -> Floats:
    """Return the time of one forward pass, s: memory and compute time, smoothed.

    A prompt attends to little and its cache is written, not read again; its tokens are charged as tokens.
    """
    kv_tokens = batch * context + tokens + prompts
    attended = tokens * (context + (positions + 1) / 2)
    asked = work(shape, _padded(tokens + prompts, captured), attended, kv_tokens)
    memory_s, compute_s = asked.bytes / parameters.byte_per_s, asked.flops / parameters.flop_per_s
    longer = np.maximum(memory_s, compute_s)
    ratio = np.minimum(memory_s, compute_s) / longer
    return np.asarray(longer * (1 + ratio**parameters.smoothing) ** (1 / parameters.smoothing), dtype=np.float64)


def _padded(tokens: Floats, captured: tuple[int, ...]) -> Floats:
    if not captured:
        return tokens
    sizes = np.asarray(sorted(captured), dtype=np.float64)
    at = np.searchsorted(sizes, np.ceil(tokens))
    inside = at < len(sizes)
    return np.where(inside, sizes[np.minimum(at, len(sizes) - 1)], tokens)
