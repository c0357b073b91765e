"""Time the points of a plan on one device, best first, until the time is up."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from speclab.errors import UserError
from speclab.probe import attention, step, timing
from speclab.probe.devices import Kind
from speclab.probe.plan import Dtype, Plan, cost_s
from speclab.probe.points import SCOUTS, Point
from speclab.probe.record import LeftOut, Timed, left_out, timed

Progress = Callable[[str], None]


@dataclass
class Outcome:
    """The results in the order of measuring, the first point timed once more, and what was left out."""

    measured: list[Timed] = field(default_factory=list)
    again: Timed | None = None
    left_out: tuple[LeftOut, ...] = ()
    took_s: float = 0.0

    @property
    def known(self) -> dict[Point, float]:
        """Median of each point, s."""
        return {timed.point: timed.median_s for timed in self.measured}


def measure(
    plan: Plan, kind: Kind, budget_s: float, *, graphs: bool = True, progress: Progress | None = None
) -> Outcome:
    """Time the core of a plan, then as much of the rest as there is time for.

    Parameters
    ----------
    plan : Plan
        What to time.
    kind : {'cpu', 'cuda'}
        Where.
    budget_s : float
        Time for all of it, making the weights included, s.
    graphs : bool
        Whether passes on a GPU are captured as CUDA graphs.
    progress : callable, optional
        Called with what is timed next.

    Raises
    ------
    UserError
        The time is too short for the core, or the weights do not fit after all.
    """
    began_s = time.perf_counter()
    graph = graphs and kind == "cuda"
    outcome = Outcome()
    bench = _bench(plan, kind)

    def left_s() -> float:
        return budget_s - (time.perf_counter() - began_s)

    def take(point: Point) -> Timed:
        if progress is not None:
            progress(f"{point.part}: {point.rows} rows x {point.positions}, context {point.context}")
        return timed(point, timing.seconds(bench.ready(point), kind, graph=graph), graph=graph)

    take(SCOUTS[0])  # not counted: clocks ramp up, kernels are loaded, memory is allocated
    for index, point in enumerate(plan.core):
        if 1 <= index <= len(SCOUTS):
            _check_core(plan, plan.core[index:], outcome.known, left_s(), budget_s)
        outcome.measured.append(take(point))
    untimed, too_big = [], list(plan.too_big)
    reserve_s = cost_s(plan.cut, SCOUTS[0], outcome.known)
    for point in plan.beyond:
        if cost_s(plan.cut, point, outcome.known) > left_s() - reserve_s:
            untimed.append(point)
            continue
        try:
            outcome.measured.append(take(point))
        except torch.OutOfMemoryError:
            too_big.append(point)
    outcome.again = take(SCOUTS[0])
    outcome.left_out = left_out(too_big, "memory") + left_out(untimed, "time")
    outcome.took_s = time.perf_counter() - began_s
    return outcome


def _check_core(plan: Plan, rest: tuple[Point, ...], known: dict[Point, float], left_s: float, budget_s: float) -> None:
    """Check that the rest of the core fits the time, estimated by the first scout, then by both point by point."""
    points = rest if len(known) == len(SCOUTS) else SCOUTS[:1] * len(rest)
    needed_s = sum(cost_s(plan.cut, point, known) for point in points)
    if needed_s <= left_s:
        return
    raise UserError(
        f"{budget_s:g} s are too short: the smallest plan takes about {budget_s - left_s + needed_s:.0f} s here",
        "give more time, fewer --layers, or a smaller shape",
        key="--seconds",
    )


def _bench(plan: Plan, kind: Kind) -> Bench:
    try:
        return Bench(plan, kind)
    except (torch.OutOfMemoryError, RuntimeError) as error:
        message = str(error).splitlines()[0]
        if "alloc" not in message and "memory" not in message:
            raise
        raise UserError(
            f"the weights do not fit into memory ({message})", "take fewer --layers", key="--layers"
        ) from None


class Bench:
    """A model with random weights and room for a cache, which prepares passes for timing.

    Parameters
    ----------
    plan : Plan
        What is to be timed.
    kind : {'cpu', 'cuda'}
        Where.
    """

    def __init__(self, plan: Plan, kind: Kind) -> None:
        self.shape = plan.cut
        self.device, self.dtype = torch.device(kind), _dtype(plan.dtype)
        self._fill = step.Filler(self.dtype, self.device)
        self.weights = step.random_weights(self.shape, self.dtype, self.device)
        self._room: Any = self._fill(0)

    def ready(self, point: Point) -> timing.Pass:
        """Return the pass of a point, with a cache of random values behind it."""
        if point.part == "step":
            batch = self.batch(point)
            return lambda: step.run(self.shape, self.weights, batch)
        if point.part == "head":
            hidden = self._fill(point.tokens, self.shape.width)
            return lambda: torch.nn.functional.linear(hidden, self.weights.head)
        logits = self._fill(point.tokens, len(self.weights.head))
        return lambda: logits.argmax(dim=-1)

    def batch(self, point: Point) -> step.PassInput:
        """Return what a whole pass of a point reads and writes."""
        shape, keys = self.shape, point.context + point.positions
        width = shape.width // shape.heads
        cos, sin = step.rotation(point.context, point.positions, width, self.dtype, self.device)
        ids = torch.arange(point.tokens, device=self.device) * 7919 % shape.vocabulary
        states = self._fill(point.tokens, shape.fused_states * shape.width) if shape.fused_states else None
        attend = attention.fitting(point.positions, keys, shape.heads // shape.kv_heads, self.dtype, self.device)
        cache = self._cache(shape.layers, 2, point.rows, shape.kv_heads, keys, width)
        pairs = tuple((of_layer[0], of_layer[1]) for of_layer in cache)
        return step.PassInput(ids.view(point.rows, point.positions), pairs, cos, sin, attend, states)

    def _cache(self, *shape: int) -> Any:
        """Return the first values of one buffer that all points share and that grows as they need it."""
        size = torch.Size(shape).numel()
        if len(self._room) < size:
            self._room = self._fill(0)  # frees the old buffer before the new one is made
            self._room = self._fill(size)
        return self._room[:size].view(shape)


def _dtype(name: Dtype) -> Any:
    return {"bfloat16": torch.bfloat16, "float32": torch.float32}[name]
