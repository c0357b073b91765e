"""The serving side: identical instances of one model, each on one or several GPUs, and how they speculate."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pydantic import Field, field_validator, model_validator

from speclab.config import Chosen
from speclab.errors import UserError
from speclab.replications.chapter10.fleet.draws import Bursts, curve_bursts, flat_bursts, plain
from speclab.roofline.devices import DEVICES, device, together
from speclab.roofline.memory import kv_capacity_tokens
from speclab.roofline.speculation import tokens_per_pass, tokens_per_pass_flat
from speclab.roofline.step import StepModel
from speclab.roofline.transformers import TRANSFORMERS, Transformer, transformer


class AssumedSpeculation(Chosen):
    """How tokens are drafted and how often the target agrees. All of it is assumed.

    Attributes
    ----------
    drafter : str, optional
        Shape of the network that drafts; None where drafting takes no pass (n-gram look-up).
    k : int
        Draft positions.
    alpha : float, optional
        Chance that one draft is accepted, the same at every position. Either this or `marginal`.
    marginal : tuple of float, optional
        Marginal acceptance by position: the share of drafts whose tokens 1..i were all accepted.
    draft_rate : float
        Share of passes in which a row has a draft; goes with `marginal`.
    below_rows : int, optional
        Speculate only in passes of fewer rows; None speculates always. Prompts are read by the drafter all the same.
    floor_s, host_s : float
        Least time of one draft position, and what every pass pays in addition, s.
    seed : int
        Of the draws.
    """

    drafter: str | None = None
    k: int = Field(ge=1)
    alpha: float | None = Field(default=None, ge=0, le=1)
    marginal: tuple[float, ...] | None = None
    draft_rate: float = Field(default=1.0, ge=0, le=1)
    below_rows: int | None = Field(default=None, ge=1)
    floor_s: float = Field(default=0.0, ge=0)
    host_s: float = Field(default=0.0, ge=0)
    seed: int = 0

    @field_validator("drafter")
    @classmethod
    def _known_drafter(cls, slug: str | None) -> str | None:
        return None if slug is None else _known(slug, TRANSFORMERS)

    @model_validator(mode="after")
    def _one_acceptance(self) -> AssumedSpeculation:
        if (self.alpha is None) == (self.marginal is None):
            raise ValueError("give either alpha or marginal")
        if self.marginal is None:
            if self.draft_rate != 1:
                raise ValueError("draft_rate goes with marginal; with alpha every row has a draft")
            return self
        if len(self.marginal) != self.k:
            raise ValueError(f"give marginal one value for each of the k = {self.k} positions")
        if any(later > earlier for earlier, later in zip((1.0, *self.marginal), (*self.marginal, 0.0), strict=True)):
            raise ValueError("give marginal values from 1 down to 0, none above the one before it")
        return self

    @property
    def tokens_per_pass(self) -> float:
        """Expected tokens of one row in one pass."""
        if self.alpha is not None:
            return tokens_per_pass_flat(self.alpha, self.k)
        return tokens_per_pass(self.marginal or (), self.draft_rate)

    def bursts(self, request: int, tokens: int) -> Bursts:
        """Return the passes in which one request decodes `tokens` tokens."""
        if self.alpha is not None:
            return flat_bursts(self.seed, request, tokens, self.k, self.alpha)
        return curve_bursts(self.seed, request, tokens, self.marginal or (), self.draft_rate)


class Charges(Chosen):
    """What passes pay besides their own work. In the source, drafting pays neither launches nor all-reduces.

    Attributes
    ----------
    launch_s : float
        Launches of one of the drafter's passes, s.
    all_reduce, target_all_reduce : bool
        Whether the drafter's passes, and the target's, pay all-reduces in tensor parallel.
    """

    launch_s: float = Field(default=0.0, ge=0)
    all_reduce: bool = False
    target_all_reduce: bool = True


class Fleet(Chosen):
    """Identical instances that serve one target.

    Attributes
    ----------
    device, target : str
        Slugs of the GPU and of the model.
    gpus : int
        GPUs of one instance, in tensor parallel.
    instances : int
        How many there are.
    speculation : AssumedSpeculation, optional
        None decodes without drafts.
    charges : Charges
        What drafting is charged.
    kv_tokens : int, optional
        Size of an instance's KV cache, if it is not to be what fits beside the weights.
    max_rows, max_prompt_tokens : int
        Most rows of an instance, and most prompt tokens of one pass; a longer prompt passes alone.
    """

    device: str = "h100-sxm"
    target: str = "llama-3-8b"
    gpus: int = Field(default=1, ge=1)
    instances: int = Field(default=1, ge=1)
    speculation: AssumedSpeculation | None = None
    charges: Charges = Charges()
    kv_tokens: int | None = Field(default=None, ge=1)
    max_rows: int = Field(default=256, ge=1)
    max_prompt_tokens: int = Field(default=8192, ge=1)

    @field_validator("device")
    @classmethod
    def _known_device(cls, slug: str) -> str:
        return _known(slug, DEVICES)

    @field_validator("target")
    @classmethod
    def _known_target(cls, slug: str) -> str:
        return _known(slug, TRANSFORMERS)

    @model_validator(mode="after")
    def _fits(self) -> Fleet:
        shape = transformer(self.target)
        if shape.heads % self.gpus or shape.kv_heads % self.gpus:
            raise ValueError(
                f"{shape.name} has {shape.heads} heads and {shape.kv_heads} of keys and values: "
                f"choose gpus that divide both, not {self.gpus}"
            )
        if self.drafter is not None and self.drafter.vocabulary != shape.vocabulary:
            raise ValueError(
                f"{self.drafter.name} reads {self.drafter.vocabulary:,} tokens and {shape.name} {shape.vocabulary:,}: "
                "choose a drafter of the target's vocabulary"
            )
        if self.drafter is not None and not self.drafter.own_embedding and self.drafter.width != shape.width:
            raise ValueError(f"{self.drafter.name} does not fit {shape.name}: choose a head as wide as the target")
        if self.kv_room <= 0:
            raise ValueError(f"the weights do not fit {self.gpus} x {self.device}: give more gpus or another device")
        return self

    @property
    def all_gpus(self) -> int:
        """GPUs of all instances."""
        return self.gpus * self.instances

    @property
    def step_model(self) -> StepModel:
        """What the steps of one instance take."""
        drafts = self.speculation
        machine, target = together(device(self.device), self.gpus), transformer(self.target)
        if not self.charges.target_all_reduce:
            machine = replace(machine, link=None)
        if drafts is None:
            return StepModel(machine, target)
        return StepModel(
            machine,
            target,
            self.drafter,
            k=drafts.k,
            floor_s=drafts.floor_s,
            host_s=drafts.host_s,
            draft_overhead_s=self.charges.launch_s,
            draft_all_reduce=self.charges.all_reduce,
        )

    @property
    def drafter(self) -> Transformer | None:
        """The network that drafts, if any does."""
        slug = None if self.speculation is None else self.speculation.drafter
        return None if slug is None else transformer(slug)

    @property
    def kv_room(self) -> int:
        """Tokens of KV cache that fit beside the weights of one instance."""
        if self.kv_tokens is not None:
            return self.kv_tokens
        return kv_capacity_tokens(together(device(self.device), self.gpus), transformer(self.target), self.drafter)

    def check_batch(self, rows: int, context: int) -> None:
        """Refuse a batch that one instance's memory cannot hold.

        Raises
        ------
        UserError
            It does not fit; the message names the most rows that would.
        """
        if rows * context > self.kv_room:
            most = self.kv_room // context
            remedy = f"at {context:,} tokens each, {most:,} rows fit" if most else "not even one row fits"
            problem = f"{rows:,} rows of {context:,} tokens need a KV cache of {rows * context:,} tokens"
            name = device(self.device).name if self.gpus == 1 else f"{self.gpus} x {device(self.device).name}"
            raise UserError(f"{problem}, and {name} has room for {self.kv_room:,}", remedy, key="batch")

    def bursts(self, request: int, tokens: int) -> Bursts:
        """Return the passes in which one request decodes `tokens` tokens, where every pass speculates."""
        return plain(tokens) if self.speculation is None else self.speculation.bursts(request, tokens)


def _known(slug: str, known: Collection[str]) -> str:
    if slug not in known:
        raise ValueError(f"choose one of {', '.join(known)}")
    return slug
