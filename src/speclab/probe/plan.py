"""What fits: layers and points in memory, points in time. Pure arithmetic; nothing is allocated or timed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from speclab.errors import UserError
from speclab.probe import points
from speclab.probe.points import Point
from speclab.roofline.forward_pass import work
from speclab.roofline.transformers import BYTES_PER_VALUE, Transformer

Dtype = Literal["bfloat16", "float32"]

VALUE_BYTES: dict[Dtype, int] = {"bfloat16": 2, "float32": 4}
USABLE_MEMORY = 0.90
"""Share of the free memory that a probe may fill."""
WARM_UP = 2
"""Passes before the first that counts."""
FEWEST, MOST = 5, 50
"""Repeats of one point."""
TIME_EACH_S = 0.4
"""Time that the repeats of one point should take together, within these limits, s."""
GB = 1e9


@dataclass(frozen=True, slots=True)
class Plan:
    """What a probe times.

    Attributes
    ----------
    model : Transformer
        The whole model.
    layers : int
        How many of its layers are run.
    dtype : {'bfloat16', 'float32'}
        Number format of weights, cache and activations.
    usable_bytes : float
        Memory that it may fill.
    core, beyond : tuple of Point
        What is always timed, and what is timed in addition while there is time, best first.
    too_big : tuple of Point
        What does not fit into memory.
    """

    model: Transformer
    layers: int
    dtype: Dtype
    usable_bytes: float
    core: tuple[Point, ...]
    beyond: tuple[Point, ...]
    too_big: tuple[Point, ...]

    @property
    def cut(self) -> Transformer:
        """The model as it is run: cut to `layers`, with the matrices that it would borrow from its target."""
        return cut(self.model, self.layers)

    @property
    def weight_bytes(self) -> int:
        """Memory of the weights, byte."""
        return weight_bytes(self.model, self.layers, self.dtype)


def plan(
    model: Transformer,
    free_bytes: float,
    dtype: Dtype = "bfloat16",
    *,
    layers: int | None = None,
    sampling: bool = False,
) -> Plan:
    """Return what can be timed of a model in the memory that is free.

    Parameters
    ----------
    model : Transformer
        The whole model.
    free_bytes : float
        Memory that is free on the device, byte; `USABLE_MEMORY` of it is filled at most.
    dtype : {'bfloat16', 'float32'}
        Number format.
    layers : int, optional
        How many layers to run; by default as many as leave room for the core's cache.
    sampling : bool
        Whether the choice of the likeliest token is timed too.

    Raises
    ------
    UserError
        The model has fewer layers, or they do not fit into memory, or not even one layer does.
    """
    usable = USABLE_MEMORY * free_bytes
    core = points.core(sampling=sampling)
    most = next((n for n in range(model.layers, 0, -1) if _fits(model, n, core, dtype, usable)), 0)
    if layers is not None and not 1 <= layers <= model.layers:
        raise UserError(f"found {layers}", f"{model.slug} has 1 to {model.layers} to run", key="--layers")
    if (layers or 1) > most:
        needed_layers = layers or 1
        needed_gb = max(bytes_of(model, needed_layers, point, dtype) for point in core) / GB
        part = f"{needed_layers} layer{'s' if needed_layers > 1 else ''} of {model.slug} in {dtype}"
        raise UserError(
            f"{part} and the smallest plan's cache need {needed_gb:.1f} GB, {usable / GB:.1f} GB may be used here",
            f"free some memory or take --layers {most}" if most else "free some memory or take a smaller shape",
        )
    run = layers or most
    rest = points.beyond(sampling=sampling)
    beyond = tuple(point for point in rest if bytes_of(model, run, point, dtype) <= usable)
    too_big = tuple(point for point in rest if point not in beyond)
    return Plan(model, run, dtype, usable, core, beyond, too_big)


def cut(model: Transformer, layers: int) -> Transformer:
    """Return a model of fewer layers that holds its embedding and LM head itself."""
    return replace(model, layers=layers, own_embedding=True, own_head=True)


def weight_bytes(model: Transformer, layers: int, dtype: Dtype) -> int:
    """Return the memory of the weights of the first `layers` layers, embedding and LM head, byte."""
    return cut(model, layers).resident_bytes * VALUE_BYTES[dtype] // BYTES_PER_VALUE


def bytes_of(model: Transformer, layers: int, point: Point, dtype: Dtype) -> int:
    """Return the memory that timing a point takes, byte: weights, cache, and the widest activations.

    The activations are counted as logits, attention's scores and the gated block's three vectors, each twice, and
    eight of the model's width.
    """
    shape = cut(model, layers)
    cache = point.kv_tokens * shape.kv_bytes_per_token // BYTES_PER_VALUE
    widths = 2 * (shape.head_parameters // shape.width) + 6 * shape.ff_width + 8 * shape.width
    scores = 2 * shape.heads * point.kv_tokens * point.positions
    return weight_bytes(model, layers, dtype) + (cache + scores + point.tokens * widths) * VALUE_BYTES[dtype]


def repeats(step_s: float) -> int:
    """Return how many times to repeat a pass that takes about `step_s`."""
    return min(MOST, max(FEWEST, int(TIME_EACH_S / max(step_s, 1e-9))))


def estimate_s(shape: Transformer, point: Point, known: Mapping[Point, float]) -> float:
    """Return what one pass of a point takes at most, s.

    A pass with `n` times the work of a known one, by operations or by bytes, takes at most `n` times as long: what
    does not grow (launches, a half-idle device) only makes it faster.

    Parameters
    ----------
    shape : Transformer
        The model as it is run.
    point : Point
        The point to estimate; a part of a step takes no longer than a step without context.
    known : mapping of Point to float
        Points that were timed, s; at least one of them a whole step.
    """
    steps = {timed: seconds for timed, seconds in known.items() if timed.part == "step"}
    return min(seconds * _growth(shape, timed, point) for timed, seconds in steps.items())


def cost_s(shape: Transformer, point: Point, known: Mapping[Point, float]) -> float:
    """Return what timing a point takes at most, s: its warm-up and its repeats; arguments as in `estimate_s`."""
    once_s = estimate_s(shape, point, known)
    return (WARM_UP + repeats(once_s)) * once_s


def _growth(shape: Transformer, small: Point, big: Point) -> float:
    """Return the work of the big point over that of the small one, at least 1."""
    before, after = (work(shape, float(point.tokens), point.attended, float(point.kv_tokens)) for point in (small, big))
    return max(1.0, after.flops / before.flops, after.bytes / before.bytes)


def _fits(model: Transformer, layers: int, core: tuple[Point, ...], dtype: Dtype, usable: float) -> bool:
    return all(bytes_of(model, layers, point, dtype) <= usable for point in core)
