"""What the doctor looks at, and what it says: facts of one machine, one arm of a lab, a diagnosis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from speclab.config import Frozen
from speclab.lab import Arm, EngineName, Lab, ServerFlag

Level = Literal["will fail", "will mislead", "not known here", "fine"]
LEVELS: tuple[Level, ...] = ("will fail", "will mislead", "not known here", "fine")
"""Worst first."""


class Diagnosis(Frozen):
    """One thing that a rule found about one arm, or about all of them."""

    level: Level
    rule: str
    found: str
    """What is so, with the numbers."""
    remedy: str = ""
    """What would do; empty where nothing has to be done."""
    cites: tuple[str, ...] = ()
    """Where it comes from: ``vllm#50488`` is issue or pull request 50488 of vllm-project/vllm, ``owner/name#1`` one of
    another repository; else the address of a page, or a source file."""
    arm: str | None = None
    """None: every arm that was looked at."""


class Gpu(Frozen):
    """One GPU as its driver gives it."""

    name: str
    memory_bytes: int


class ModelFiles(Frozen):
    """What of one model lies on this machine."""

    place: Literal["folder", "missing folder", "hub cache", "hub"]
    """``hub``: a name on the model hub, of which nothing is here."""
    where: str
    """The folder as a reader sees it; for ``hub`` the cache that it would go to."""
    config: dict[str, Any] | None = None
    weight_bytes: int = 0


class Machine(Frozen):
    """What is known about the machine that the doctor runs on."""

    vllm: str | None = None
    """Version in this environment; None where there is none."""
    vllm_build: Literal["gpu", "cpu"] | None = None
    synthetic_on_cpu: bool = False
    """Whether this environment gives vLLM's CPU build a synthetic acceptance (a plugin of this project)."""
    gpus: tuple[Gpu, ...] = ()
    memory_bytes: int = 0
    """Main memory that a new process may have, byte."""
    disk_bytes: dict[str, int] = {}
    """Free room in byte by what it is for: ``records`` and ``models``."""
    variables: dict[str, str] = {}
    """Those of this process's variables that change what vLLM does; none of them is a secret."""
    has_hub_token: bool = False
    can_listen: bool = True
    models: dict[str, ModelFiles] = {}
    refused: dict[str, str | None] | None = None
    """By arm, what the installed vLLM's own parser says against its flags; None where it was not asked."""
    clean_rate_per_s: float | None = None
    """Events a second that this client sees as they were sent (`speclab.load.selftest`); None where not measured."""
    base_url: str | None = None
    has_api_key: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """One arm on one machine.

    Attributes
    ----------
    lab, arm : Lab, Arm
        What would be run.
    baseline : Arm, optional
        What the arm will be compared with; None where the lab has no baseline.
    machine : Machine
        Where.
    engine : {'simulated', 'endpoint', 'vllm'}
        By what.
    """

    lab: Lab
    arm: Arm
    baseline: Arm | None
    machine: Machine
    engine: EngineName = "vllm"

    @property
    def flags(self) -> dict[str, ServerFlag]:
        """Flags of ``vllm serve`` that this arm gets."""
        return self.lab.server_flags(self.arm)

    @property
    def top(self) -> int:
        """The highest concurrency, requests in flight."""
        return max(self.lab.concurrencies)

    @property
    def method(self) -> str | None:
        """How the arm drafts; None for the baseline."""
        return self.arm.speculation.method if self.arm.speculation else None

    @property
    def on_cpu(self) -> bool:
        """Whether a server started here would run on the CPU."""
        return not self.machine.gpus

    def variable(self, name: str) -> str | None:
        """Return a variable as the server gets it: the lab's, else this process's."""
        return self.lab.environment.get(name, self.machine.variables.get(name))

    def whole_number(self, flag: str) -> int | None:
        """Return a flag's whole number; None where the lab does not give one."""
        value = self.flags.get(flag)
        return value if isinstance(value, int) and not isinstance(value, bool) else None


Rule = Callable[[Case], list[Diagnosis]]
"""A pure function; its first line of doc says what it protects from."""


def say(level: Level, rule: str, found: str, remedy: str = "", *cites: str) -> list[Diagnosis]:
    """Return one diagnosis as the list that a rule gives."""
    return [Diagnosis(level=level, rule=rule, found=found, remedy=remedy, cites=cites)]
