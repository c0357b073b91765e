"""What to run: a lab, its arms, workloads and phases, read from ``labs/`` and validated.

A lab is a folder. ``lab.yml`` holds what all its arms share; every other ``<arm>.yml`` is one configuration, and is at
the same time the papermill parameter file of ``notebooks/run_arm.ipynb``. Only this module reads that folder.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from speclab import paths
from speclab.config import Chosen, read_yaml, validated
from speclab.errors import UserError

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
"""What labs, arms and devices may be called: their names are folders and files."""

WorkloadName = Literal["chat", "completion", "revision"]
EngineName = Literal["simulated", "endpoint", "vllm"]
Probability = Annotated[float, Field(ge=0, le=1)]
# Bounds are generous: they catch a slip of the hand, not an unusual lab. A whole number is one, not true, 1.0 or "1".
Concurrency = Annotated[int, Field(strict=True, gt=0, le=65_536)]
Count = Annotated[int, Field(strict=True, gt=0, le=1_000)]
Tokens = Annotated[int, Field(strict=True, gt=0, le=1_000_000)]
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**32)]
Seconds = Annotated[float, Field(ge=0, le=86_400)]
DraftMs = Annotated[float, Field(ge=0, le=10_000)]
Name = Annotated[str, Field(pattern=NAME)]
DraftRange = tuple[Concurrency, Concurrency, Annotated[int, Field(strict=True, ge=0, le=1_000)]]
ServerFlag = str | int | float | bool | list[int] | dict[str, Any]

BASELINE = "baseline"


class Phases(Chosen):
    """The length of one cell and what is dropped at its two ends, in seconds."""

    length_s: Annotated[float, Field(gt=0, le=86_400)] = 60.0
    drop_first_s: Seconds = 5.0
    drop_last_s: Seconds = 3.0

    @model_validator(mode="after")
    def _window_is_left(self) -> Self:
        if self.drop_first_s + self.drop_last_s >= self.length_s:
            raise ValueError("length_s must be longer than drop_first_s + drop_last_s")
        return self

    @property
    def window_s(self) -> tuple[float, float]:
        """The measured window's two borders, in seconds after the load's start."""
        return self.drop_first_s, self.length_s - self.drop_last_s


class Sampling(Chosen):
    """How every arm of a lab samples."""

    temperature: float = Field(default=0.0, ge=0, le=100)
    max_tokens: Tokens = 512
    seed: Seed = 0
    ignore_eos: bool = False


class Target(Chosen):
    """The large model that every arm serves."""

    model: str
    tokens: str
    """Which stored prompt token counts are this model's (`speclab.prompts.token_counts`)."""


class Answers(Chosen):
    """Length of the simulated answers: lognormal, cut at the lab's ``max_tokens``. An assumption."""

    mean_tokens: float = Field(gt=0, le=1_000_000)
    cv: float = Field(ge=0, le=10)


class SimulatedTarget(Chosen):
    """What the simulated engine takes the machine and the target to be."""

    device: str
    shape: str
    answers: dict[WorkloadName, Answers]


class SimulatedDrafter(Chosen):
    """What the simulated engine takes a drafter to be: its cost, and how often the target agrees."""

    shape: str | None = None
    """Shape of the drafter's network in `speclab.roofline.transformers`; its roofline bounds the cost from below."""
    floor_ms_per_position: DraftMs = 0.0
    """Time of one draft position that no batch makes shorter (kernel launches), ms."""
    host_ms_per_step: DraftMs = 0.0
    """Time that each step pays while this arm runs, drafted or not (look-up, lost overlap), ms."""
    acceptance: dict[WorkloadName, tuple[Probability, ...]]
    """Marginal acceptance by draft position: share of drafts whose tokens up to here were all accepted."""
    draft_rate: dict[WorkloadName, Probability] = {}
    """Share of row-steps in which the drafter has a draft at all; 1 where not given."""

    @model_validator(mode="after")
    def _survival_curves(self) -> Self:
        for workload, curve in self.acceptance.items():
            if not curve or _rises(curve):
                raise ValueError(
                    f"acceptance of {workload} must be a falling curve, one value for each draft position "
                    "(share of drafts accepted up to that position)"
                )
        return self


class Speculation(Chosen):
    """vLLM's ``--speculative-config`` of one arm; the keys are vLLM's own."""

    method: Literal["draft_model", "eagle3", "ngram"]
    num_speculative_tokens: Count
    model: str | None = None
    prompt_lookup_min: Tokens | None = None
    prompt_lookup_max: Tokens | None = None
    draft_tensor_parallel_size: Count | None = None
    rejection_sample_method: Literal["synthetic"] | None = None
    """Not given: draft tokens are compared with the target's. ``synthetic``: accepted by chance; the text is wrong."""
    synthetic_acceptance_rates: tuple[Probability, ...] | None = None
    """Marginal acceptance by draft position that vLLM is to hold; `SimulatedDrafter.acceptance` means the same."""
    num_speculative_tokens_per_batch_size: tuple[DraftRange, ...] | None = None
    """vLLM's schedule: first batch size, last batch size, draft tokens. 0 switches speculation off; beyond a range its
    value is kept. `speclab.advice` prints one."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        bounds = (self.prompt_lookup_min, self.prompt_lookup_max)
        if self.method == "ngram":
            if None in bounds:
                # vLLM fills one missing bound from the other and 5/5 for both: never leave it to that
                raise ValueError("ngram needs prompt_lookup_min and prompt_lookup_max, both explicit")
            if self.model is not None:
                raise ValueError("ngram takes no model")
        elif self.model is None:
            raise ValueError(f"{self.method} needs a model")
        elif bounds != (None, None):
            raise ValueError(f"{self.method} takes no prompt_lookup bounds")
        return self

    @model_validator(mode="after")
    def _forced_by_a_curve(self) -> Self:
        rates = self.synthetic_acceptance_rates
        if (rates is None) != (self.rejection_sample_method is None):
            raise ValueError("rejection_sample_method: synthetic and synthetic_acceptance_rates go together")
        if rates is not None and (len(rates) != self.num_speculative_tokens or _rises(rates)):
            raise ValueError(
                f"synthetic_acceptance_rates must be a falling curve, one value for each of the "
                f"{self.num_speculative_tokens} draft positions (share of drafts accepted up to that position)"
            )
        return self

    @model_validator(mode="after")
    def _schedule_covers_each_batch(self) -> Self:
        ranges = self.num_speculative_tokens_per_batch_size
        if ranges is None:
            return self
        key = "num_speculative_tokens_per_batch_size"
        if not ranges or ranges[0][0] != 1:
            raise ValueError(f"{key} must begin at batch size 1")
        if any(first > last for first, last, _ in ranges) or any(
            later[0] <= earlier[1] for earlier, later in itertools.pairwise(ranges)
        ):
            raise ValueError(f"{key} must rise without overlaps: [first batch size, last, draft tokens]")
        if max(k for *_, k in ranges) != self.num_speculative_tokens:
            raise ValueError(f"num_speculative_tokens must be the most that {key} drafts: {max(k for *_, k in ranges)}")
        if self.is_forced:
            raise ValueError(f"acceptance is forced at one k: leave {key} out")
        return self

    @property
    def has_schedule(self) -> bool:
        """Whether the draft tokens go by the batch size."""
        return self.num_speculative_tokens_per_batch_size is not None

    @property
    def is_forced(self) -> bool:
        """Whether draft tokens are accepted by chance."""
        return self.rejection_sample_method is not None

    def k_at(self, batch_size: int) -> int:
        """Return the draft tokens that a step of so many requests asks for."""
        ranges = self.num_speculative_tokens_per_batch_size
        if ranges is None:
            return self.num_speculative_tokens
        return [k for first, _, k in ranges if first <= batch_size][-1]

    def as_vllm(self) -> dict[str, Any]:
        """Return the JSON object that ``vllm serve --speculative-config`` takes."""
        return self.model_dump(exclude_none=True)


class Arm(Chosen):
    """One configuration of a lab; the keys are the parameters of ``notebooks/run_arm.ipynb``."""

    lab: Name
    arm: Name
    label: str
    speculation: Speculation | None = None
    server: dict[str, ServerFlag] = {}
    """Flags of ``vllm serve`` that differ from the lab's, in any of vLLM's forms (`speclab.engines.vllm_flags`)."""
    simulated: SimulatedDrafter | None = None
    workloads: tuple[WorkloadName, ...] | None = None
    """The part of the lab's workloads that this arm runs; all where not given."""
    concurrencies: tuple[Concurrency, ...] | None = None
    """The part of the lab's concurrencies that this arm runs; all where not given."""
    repeats: Count | None = None
    """How often each cell of this arm is run; as often as the lab says where not given."""

    @property
    def k(self) -> int:
        """Draft tokens asked for at each step, at most; 0 for the baseline."""
        return self.speculation.num_speculative_tokens if self.speculation else 0

    def k_at(self, concurrency: int) -> int:
        """Return the draft tokens asked for at each step of so many requests; 0 for none."""
        return self.speculation.k_at(concurrency) if self.speculation else 0

    @property
    def has_schedule(self) -> bool:
        """Whether the draft tokens go by the batch size."""
        return self.speculation is not None and self.speculation.has_schedule

    @property
    def is_forced(self) -> bool:
        """Whether draft tokens are accepted by chance; the text of such an arm is not the target's."""
        return self.speculation is not None and self.speculation.is_forced


class Look(Chosen):
    """How an arm is drawn where `speclab.figures.style` should not choose; a key that is left out is chosen."""

    label: str | None = None
    colour: Annotated[str, Field(pattern=r"^#[0-9A-Fa-f]{6}$")] | None = None
    marker: Annotated[str, Field(pattern=r"^[ov^<>8sp*hHDdPX]$")] | None = None
    """A filled marker of matplotlib."""
    line: Literal["-", "--", "-.", ":"] | tuple[Annotated[float, Field(gt=0, le=100)], ...] | None = None
    """Solid, dashed, dash-dotted, dotted, or the lengths of dashes and gaps in points."""


class Lab(Chosen):
    """What all arms of one lab share."""

    title: str
    question: str
    target: Target
    engine: EngineName = "simulated"
    """The engine that runs this lab unless another is named."""
    arms: tuple[Name, ...] = Field(min_length=1)
    workloads: tuple[WorkloadName, ...] = Field(min_length=1)
    concurrencies: tuple[Concurrency, ...] = Field(min_length=1)
    repeats: Count = 1
    side_by_side: bool = False
    """Whether all arms' vLLM servers are up at once in `speclab run`, and every arm measures a cell before the next."""
    phases: Phases = Phases()
    sampling: Sampling = Sampling()
    server: dict[str, ServerFlag] = {}
    """Flags of ``vllm serve`` that every arm gets, in any of vLLM's forms (`speclab.engines.vllm_flags`)."""
    environment: dict[str, str] = {}
    """Environment variables that the server of every arm gets."""
    simulated: SimulatedTarget | None = None
    looks: dict[Name, Look] = {}
    """How arms are drawn, in the order in which they are; arms that are not named follow, in the lab's order."""
    name: Name
    """The folder's name; not written in ``lab.yml``."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if list(self.concurrencies) != sorted(set(self.concurrencies)):
            raise ValueError("concurrencies must rise, without repeats")
        if len(set(self.arms)) != len(self.arms):
            raise ValueError("arms holds a name twice")
        if unknown := sorted(set(self.looks) - set(self.arms)):
            raise ValueError(f"looks names {unknown[0]!r}, which is none of the arms")
        return self

    def arm(self, name: str) -> Arm:
        """Return one arm, read from its file.

        Raises
        ------
        UserError
            The lab has no such arm, or the arm's file holds a mistake.
        """
        if name not in self.arms:
            raise UserError(f"unknown arm {name!r}", f"the arms of {self.name}: {', '.join(self.arms)}",
                            file=_folder(self.name) / "lab.yml", key="arms")  # fmt: skip
        file = _folder(self.name) / f"{name}.yml"
        arm = read_arm(file)
        if (arm.lab, arm.arm) != (self.name, name):
            raise UserError(f"says lab {arm.lab!r}, arm {arm.arm!r}",
                            f"the path says lab {self.name!r}, arm {name!r}; make them agree", file=file)  # fmt: skip
        return arm

    def arms_by(self, *methods: str) -> tuple[str, ...]:
        """Return the names of the arms that draft by one of these methods, in the lab's order."""
        arms = [self.arm(name) for name in self.arms]
        return tuple(arm.arm for arm in arms if arm.speculation and arm.speculation.method in methods)

    def grid(self, arm: Arm) -> list[tuple[int, WorkloadName, int]]:
        """Return repeat, workload and concurrency of each cell of one arm, in the order in which they are run."""
        repeats = range(arm.repeats or self.repeats)
        return list(
            itertools.product(repeats, arm.workloads or self.workloads, arm.concurrencies or self.concurrencies)
        )


def names() -> list[str]:
    """Return the names of the labs in this checkout."""
    return sorted(file.parent.name for file in paths.labs().glob("*/lab.yml"))


def load(name: str) -> Lab:
    """Return a lab by name.

    Raises
    ------
    UserError
        There is no such lab, or its file holds a mistake (the file, the key, what was found and what would do).
    """
    file = _folder(name) / "lab.yml"
    if name not in names():
        here = f"the labs here: {', '.join(names())}" if names() else "no lab is here: SPECLAB_ROOT names the checkout"
        raise UserError(f"unknown lab {name!r}", here, file=paths.labs())
    return validated(Lab, {**read_yaml(file), "name": name}, file)


def read_arm(file: Path) -> Arm:
    """Return the arm that a file describes."""
    return validated(Arm, read_yaml(file), file)


def _rises(curve: Sequence[float]) -> bool:
    return any(later > earlier for earlier, later in itertools.pairwise(curve))


def _folder(lab: str) -> Path:
    return paths.labs() / lab
