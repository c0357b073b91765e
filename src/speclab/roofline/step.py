"""Time of one step of a continuously batching server: decode rows, their drafts, new prompts, the host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from speclab.roofline.devices import Device
from speclab.roofline.forward_pass import Bound, PassTime, pass_time, work
from speclab.roofline.transformers import BYTES_PER_VALUE, Transformer

STEP_OVERHEAD_S = 0.5e-3
"""Scheduler and kernel launches of one target pass, s. Source: Disaggregated_Inference_Sim."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one step that write tokens.

    Attributes
    ----------
    count, context : int
        Rows, and the tokens cached for all of them together.
    drafted, drafted_context : int
        The same of those rows that have a draft to verify.
    """

    count: int = 0
    context: int = 0
    drafted: int = 0
    drafted_context: int = 0


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts, or pieces of prompts, that one step prefills: the three sums of `speclab.roofline.forward_pass`."""

    tokens: int = 0
    attended: float = 0
    kv_tokens: int = 0

    def plus(self, piece: int, cached: int = 0) -> Prompts:
        """Return these prompts and `piece` tokens of one more, of which `cached` tokens were prefilled before."""
        return Prompts(
            self.tokens + piece,
            self.attended + piece * (2 * cached + piece + 1) / 2,
            self.kv_tokens + cached + piece,
        )


NO_PROMPTS = Prompts()


@dataclass(frozen=True, slots=True)
class StepTime:
    """What one step takes.

    Attributes
    ----------
    seconds : float
        Time of the whole step, s.
    drafting_s : float
        The part of it spent drafting, s.
    all_reduce_s : float
        The part of it spent in all-reduces, the drafter's included where they are charged, s.
    energy_j, link_j : float
        Dynamic energy of the GPUs and of their links, J; power at rest not included.
    bound : {'memory', 'compute', 'power'}
        What set the time of the target's pass.
    """

    seconds: float
    drafting_s: float
    all_reduce_s: float
    energy_j: float
    link_j: float
    bound: Bound


@dataclass(frozen=True, slots=True)
class StepModel:
    """Times the steps of one arm on one device; everything in a step is serial.

    A device of several GPUs holds the target in tensor parallel: each layer of its pass pays two all-reduces.

    Attributes
    ----------
    device, target : Device, Transformer
        The machine and the model that verifies.
    drafter : Transformer, optional
        The network that drafts; None where drafting takes no pass (n-gram look-up, baseline).
    k : int
        Draft positions; 0 in the baseline.
    floor_s : float
        Least time of one draft position, s.
    host_s : float
        Further time that every step pays, s.
    overhead_s : float
        Scheduler and launches of the target pass, s.
    draft_overhead_s : float
        Launches of each of the drafter's passes, s; the source charges none.
    draft_all_reduce : bool
        Whether the drafter's passes pay all-reduces as the target's do; in the source they do not.
    """

    device: Device
    target: Transformer
    drafter: Transformer | None = None
    k: int = 0
    floor_s: float = 0.0
    host_s: float = 0.0
    overhead_s: float = field(default=STEP_OVERHEAD_S)
    draft_overhead_s: float = 0.0
    draft_all_reduce: bool = False

    def step(self, rows: Rows, prompts: Prompts = NO_PROMPTS) -> StepTime:
        """Return time and energy of one step, and what set them."""
        target, tokens = self._target_pass(rows, prompts)
        drafts = list(self._draft_passes(rows, prompts))
        reduced = [(self.target, tokens)]
        if self.draft_all_reduce and self.drafter is not None:
            reduced += [(self.drafter, draft_tokens) for _, draft_tokens in drafts]
        return StepTime(
            seconds=self.seconds(rows, prompts),
            drafting_s=self.drafting_seconds(rows, prompts),
            all_reduce_s=sum(self._all_reduce_s(shape, pass_tokens) for shape, pass_tokens in reduced),
            energy_j=target.energy_j + sum(draft.energy_j for draft, _ in drafts if draft is not None),
            link_j=sum(self._all_reduce_j(shape, pass_tokens) for shape, pass_tokens in reduced),
            bound=target.bound,
        )

    def seconds(self, rows: Rows, prompts: Prompts = NO_PROMPTS) -> float:
        """Return the time of one step, s: target pass, drafting, overhead, host."""
        return self.target_seconds(rows, prompts) + self.drafting_seconds(rows, prompts) + self.host_s

    def target_seconds(self, rows: Rows, prompts: Prompts = NO_PROMPTS) -> float:
        """Return the time of the target's pass with its all-reduces and its overhead, s.

        A row with a draft runs k + 1 positions, a row without one runs one.
        """
        timed, tokens = self._target_pass(rows, prompts)
        return timed.seconds + self._all_reduce_s(self.target, tokens) + self.overhead_s

    def drafting_seconds(self, rows: Rows, prompts: Prompts = NO_PROMPTS) -> float:
        """Return the time of the drafter's passes, s.

        The first position's pass also reads the step's prompts, as vLLM's drafters do; it runs where there is either.
        The positions are sequential, one token of each drafted row at a time.
        """
        return sum(self._draft_seconds(draft, tokens) for draft, tokens in self._draft_passes(rows, prompts))

    def _target_pass(self, rows: Rows, prompts: Prompts) -> tuple[PassTime, int]:
        k = self.k
        tokens = rows.count + k * rows.drafted + prompts.tokens
        attended = rows.context + rows.count + prompts.attended
        attended += k * rows.drafted_context + rows.drafted * ((k + 1) * (k + 2) / 2 - 1)
        kv_tokens = rows.context + rows.count + k * rows.drafted + prompts.kv_tokens
        return pass_time(self.device, work(self.target, tokens, attended, kv_tokens)), tokens

    def _draft_passes(self, rows: Rows, prompts: Prompts) -> Iterator[tuple[PassTime | None, int]]:
        """Yield the time of each of the drafter's passes, None where it is no network, and the tokens it runs."""
        for position in range(self.k):
            if position:
                prompts = NO_PROMPTS
            if not rows.drafted and not prompts.tokens:
                continue
            if self.drafter is None:
                if rows.drafted:
                    yield None, rows.drafted
                continue
            tokens = rows.drafted + prompts.tokens
            cached = rows.drafted_context + (position + 1) * rows.drafted
            draft_work = work(self.drafter, tokens, cached + prompts.attended, cached + prompts.kv_tokens)
            yield pass_time(self.device, draft_work), tokens

    def _draft_seconds(self, draft: PassTime | None, tokens: int) -> float:
        if draft is None or self.drafter is None:
            return self.floor_s
        seconds = max(self.floor_s, draft.seconds) + self.draft_overhead_s
        return seconds + self._all_reduce_s(self.drafter, tokens) if self.draft_all_reduce else seconds

    def _all_reduce_s(self, shape: Transformer, tokens: int) -> float:
        gpus, link = self.device.gpus, self.device.link
        if gpus == 1 or link is None:
            return 0.0
        return 2 * shape.layers * link.all_reduce_s(gpus, tokens * shape.width * BYTES_PER_VALUE)

    def _all_reduce_j(self, shape: Transformer, tokens: int) -> float:
        gpus, link = self.device.gpus, self.device.link
        if gpus == 1 or link is None:
            return 0.0
        return 2 * shape.layers * link.all_reduce_j(gpus, tokens * shape.width * BYTES_PER_VALUE)
