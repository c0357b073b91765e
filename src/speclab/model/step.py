"""Time of one step of a server that batches continuously: decode rows, their drafts, new prompts, the host."""

from __future__ import annotations

from dataclasses import dataclass, field

from speclab.model.cost import pass_time, work
from speclab.model.devices import Device
from speclab.model.transformers import Transformer

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
    """The prompts, or pieces of prompts, that one step prefills: the three sums of `speclab.model.cost`."""

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
class StepCost:
    """Prices the steps of one arm on one device; everything in a step is serial.

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
        Time that every step pays besides, s.
    overhead_s : float
        Scheduler and launches of the target pass, s.
    """

    device: Device
    target: Transformer
    drafter: Transformer | None = None
    k: int = 0
    floor_s: float = 0.0
    host_s: float = 0.0
    overhead_s: float = field(default=STEP_OVERHEAD_S)

    def seconds(self, rows: Rows, prompts: Prompts = NO_PROMPTS) -> float:
        """Return the time of one step, s: target pass, drafting, overhead, host."""
        return self.target_seconds(rows, prompts) + self.drafting_seconds(rows, prompts) + self.host_s

    def target_seconds(self, rows: Rows, prompts: Prompts = NO_PROMPTS) -> float:
        """Return the time of the target's pass with its overhead, s.

        A row with a draft runs k + 1 positions, a row without one runs one.
        """
        k = self.k
        tokens = rows.count + k * rows.drafted + prompts.tokens
        attended = rows.context + rows.count + prompts.attended
        attended += k * rows.drafted_context + rows.drafted * ((k + 1) * (k + 2) / 2 - 1)
        kv_tokens = rows.context + rows.count + k * rows.drafted + prompts.kv_tokens
        return pass_time(self.device, work(self.target, tokens, attended, kv_tokens)).seconds + self.overhead_s

    def drafting_seconds(self, rows: Rows, prompts: Prompts = NO_PROMPTS) -> float:
        """Return the time of the drafter's passes, s.

        The first position's pass also reads the step's prompts, as vLLM's drafters do; it runs where there is either.
        The positions are sequential, one token of each drafted row at a time.
        """
        return sum(self._position_seconds(rows, position, prompts) for position in range(self.k))

    def _position_seconds(self, rows: Rows, position: int, prompts: Prompts) -> float:
        if position:
            prompts = NO_PROMPTS
        if not rows.drafted and not prompts.tokens:
            return 0.0
        if self.drafter is None:
            return self.floor_s if rows.drafted else 0.0
        cached = rows.drafted_context + (position + 1) * rows.drafted
        reads = work(self.drafter, rows.drafted + prompts.tokens, cached + prompts.attended, cached + prompts.kv_tokens)
        return max(self.floor_s, pass_time(self.device, reads).seconds)
