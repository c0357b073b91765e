"""What advice is made of."""

from __future__ import annotations

from speclab.config import Frozen
from speclab.findings.pairs import OK
from speclab.lab import BASELINE


class ServedArm(Frozen):
    """The arm to serve with at one number of requests in flight."""

    concurrency: int
    arm: str
    speed_up: float
    low: float | None
    """95% interval of the speed-up; None where no noise is known."""
    high: float | None
    ties: tuple[str, ...]
    """Other arms with no detectable difference from the fastest."""
    status: str
    """``ok``, or ``not resolved``: neither a gain nor a loss against the baseline is shown here."""


class Changeover(Frozen):
    """Where to change over from one arm to another as requests in flight rise, with its gap."""

    below: str
    above: str
    value: float | None
    """Requests in flight at which the two are equally fast; None where that is only known to lie in the gap."""
    low: int
    """Change back to `below` when fewer are in flight."""
    high: int
    """Change over to `above` when more are in flight."""
    status: str

    @property
    def sentence(self) -> str:
        """The change in a sentence."""
        point = "somewhere in between" if self.value is None else f"at {self.value:.0f}"
        return (
            f"{self.below} up to {self.high} in flight, then {self.above}; back to {self.below} below {self.low} "
            f"(equally fast {point})"
        )


class Line(Frozen):
    """A server to start."""

    purpose: str
    command: str


class Part(Frozen):
    """The advice for one workload, or for the mix."""

    name: str
    served: tuple[ServedArm, ...]
    changes: tuple[Changeover, ...]
    not_known: tuple[int, ...]
    """Concurrencies of the lab at which no arm's speed-up passed its checks."""
    drafter: str | None
    """The drafter of a single server for all loads; None where none is worth having."""
    schedule: tuple[tuple[int, int, int], ...] | None
    """vLLM's ``num_speculative_tokens_per_batch_size`` for it; None where k is the same at each load."""
    lines: tuple[Line, ...]

    @property
    def turn(self) -> dict[str, int]:
        """The last load at which speculation is chosen and shown to gain, and the baseline's at the next one.

        Empty where one of the two is not there.
        """
        gains = [served for served in self.served if served.arm != BASELINE and served.status == OK]
        if not gains:
            return {}
        beyond = [served for served in self.served if served.concurrency > gains[-1].concurrency]
        if not beyond or beyond[0].arm != BASELINE:
            return {}
        return {gains[-1].arm: gains[-1].concurrency, BASELINE: beyond[0].concurrency}


class Regret(Frozen):
    """What an arm that serves everybody costs one workload at one number of requests in flight."""

    arm: str
    workload: str
    concurrency: int
    value: float
    """1 less its throughput over that of the workload's fastest arm."""
    low: float | None
    high: float | None
    best: str


class ChosenK(Frozen):
    """The k of one drafter at one place: the smallest with no detectable difference from the fastest."""

    drafter: str
    workload: str
    concurrency: int
    k: int
    how: str
    ms_per_token: float
    low: float
    high: float
    cost: str


class Warned(Frozen):
    """Something that users learned the hard way, and where they told it."""

    about: str
    text: str
    links: tuple[str, ...]


class Advice(Frozen):
    """What a lab's results say to do."""

    lab: str
    source: str
    mix: dict[str, float]
    """Shares of the tokens that the traffic asks for."""
    parts: tuple[Part, ...]
    regret: tuple[Regret, ...]
    k: tuple[ChosenK, ...]
    worth_measuring: dict[str, tuple[int, ...]]
    """By drafter, the values of k that are worth a run."""
    left_out: dict[str, str]
    """Arms that are never advised, and why."""
    warnings: tuple[Warned, ...]
    why_not: str | None = None
    """Why there is no advice; None where there is."""
