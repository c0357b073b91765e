"""What a mock server does: a script in YAML, JSON or Python, with a default for everything.

The server has one engine loop whose rows share each step (`speclab.engines.mock_batch`). A script says how long steps
take, what they give each row, how the answers are written to the wire, what the pages of counters show, and which
requests go wrong and how. ``speclab mock SCRIPT.yml`` serves one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from speclab.config import Chosen, read_yaml, validated
from speclab.lab import Probability

Count = Annotated[int, Field(ge=1)]
Index = Annotated[int, Field(ge=0)]
Duration = Annotated[float, Field(ge=0)]
StepTime = Duration | Annotated[tuple[tuple[Count, Duration], ...], Field(min_length=1)]


class Acceptance(Chosen):
    """How the draft tokens of some prompts fare."""

    prompt_has: str = ""
    """Part of the text of the prompts that this is for; the first entry that fits counts."""
    rates: tuple[Probability, ...] = ()
    """Marginal acceptance by draft position, never rising; its length is the number of tokens in a draft."""
    draft_rate: Probability = 1.0
    """Share of row-steps that have a draft."""

    @model_validator(mode="after")
    def _never_rises(self) -> Self:
        if any(later > earlier for earlier, later in zip(self.rates, self.rates[1:], strict=False)):
            raise ValueError("rates of acceptance must not rise: they are marginal")
        return self


class Change(Chosen):
    """From some moment on the engine serves otherwise."""

    after_s: Duration
    """When, in seconds after the first completion was asked for."""
    step_ms: StepTime | None = None
    acceptance: tuple[Acceptance, ...] | None = None


class Pace(Chosen):
    """The engine: how long its steps take and what they give."""

    step_ms: StepTime = 0.0
    """Time of a step, ms: one number, or pairs of rows and time, with a line between two pairs and the last line
    going on. 0 is as fast as it goes."""
    prefill_ms: Duration = 0.0
    """How much longer a step takes in which prompts are read, ms. It gives each of their rows one token."""
    acceptance: tuple[Acceptance, ...] = (Acceptance(),)
    draws: Literal["even", "random"] = "even"
    """``even``: each prompt's draws fill the unit interval evenly, so that shares come out right after a few of them;
    ``random``: pseudo-random. Either way a prompt has the same draws each time."""
    max_running: Count | None = None
    """Rows that run at once; the others wait."""
    preempt_every: Count | None = None
    """Every so many steps the newest row loses its step and is read again."""
    changes: tuple[Change, ...] = ()


class Answering(Chosen):
    """What is answered."""

    model: str = "mock"
    answer_tokens: tuple[Count, Count] = (3, 3)
    """The shortest and the longest answer; each prompt has its own length."""
    max_tokens: Count | None = None
    """A cap on answers that the server does not announce."""
    tokens_per_event: tuple[Count, ...] = ()
    """One event for each entry, holding so many tokens, in place of `answer_tokens` and `acceptance`."""
    k: Count | None = None
    """Draft tokens of each step of `tokens_per_event`: an event of n tokens had n - 1 accepted."""
    prompt_tokens: Index = 7
    token_text: str = "x"
    """Text of every token."""


class Wire(Chosen):
    """How answers are written."""

    usage: Literal["running", "final", "none"] = "running"
    """The usage that it can send: with each chunk, only at the end, or not at all. Never more than was asked for."""
    chunk: Literal["step", "token"] = "step"
    """What a chunk holds: the tokens of a step, or one token."""
    steps_per_chunk: Count = 1
    """Steps merged into a chunk."""
    cut_writes: bool = False
    """Send each chunk in two parts, cut in the middle of its text, even of a character of several bytes."""


class Shown(Chosen):
    """What the other pages show."""

    dialect: Literal["vllm", "sglang", "llama.cpp"] = "vllm"
    """Whose names the counters have."""
    version: str | None = None
    """What ``/version`` answers; None: there is no such page."""
    listed: bool = True
    """Whether ``/v1/models`` exists."""
    models: str | None = None
    """What ``/v1/models`` answers in place of a list with `model`."""
    metrics: bool = True
    """Whether ``/metrics`` exists."""
    gauges: bool = True
    """Whether it shows how many requests run and wait."""
    running_shown: Index | None = None
    """What the gauge of running requests says whatever runs."""
    engines: Count = 1
    """Engines that share the requests, each with a label set of its own."""
    counter_factors: dict[str, Duration] = {}
    """Factors by which counters lie, by name: ``accepted_tokens: 1.2``."""
    counters_reset_s: Duration | None = None
    """When the counters begin again at 0, in seconds after the first completion was asked for."""
    counters_vanish_s: Duration | None = None
    """When the page of counters goes away."""


class Faults(Chosen):
    """What goes wrong, and with which requests. Requests are counted from 0, in order of arrival."""

    fault_from: Index = 0
    fault_to: Index | None = None
    """The first request that is well again."""
    fault_every: Count = 1
    """Of the requests between, every so many are hit."""
    status: Annotated[int, Field(ge=200, le=599)] = 200
    """What is answered in place of a completion; anything but 200 carries an error."""
    retry_after_s: Index | None = None
    """The header Retry-After of such an answer, s."""
    reason: str = "told to refuse"
    """What errors say; ``{key}`` in it is replaced by the key of the request."""
    error_style: Literal["openai", "object", "text"] = "openai"
    """How errors are written: ``{"error": {...}}``, ``{"object": "error", ...}``, or plain text."""
    close_after: Index | None = None
    """Close the connection after so many events."""
    reset_after: Index | None = None
    """Reset the connection after so many events."""
    hang_after: Index | None = None
    """Give this answer nothing more after so many events, and keep its connection; the others go on."""
    garbage_after: Index | None = None
    """Send a line that is no JSON after so many events."""
    error_after: Index | None = None
    """Put an error into the stream after so many events, and end it."""

    def hits(self, number: int) -> bool:
        """Return whether the request of this number goes wrong."""
        since = number - self.fault_from
        return since >= 0 and since % self.fault_every == 0 and (self.fault_to is None or number < self.fault_to)


class Script(Pace, Answering, Wire, Shown, Faults):
    """How a mock server behaves; the fields are those of its parts.

    See Also
    --------
    Pace, Answering, Wire, Shown, Faults
    """

    @property
    def positions(self) -> int | None:
        """Draft tokens of the longest draft; None without speculation, and so without its counters."""
        curves = [self.acceptance, *(change.acceptance or () for change in self.changes)]
        return self.k or max(len(entry.rates) for curve in curves for entry in (*curve, Acceptance())) or None

    @property
    def breaks_streams(self) -> bool:
        """Whether a fault of a stream is scripted."""
        places = (self.close_after, self.reset_after, self.hang_after, self.garbage_after, self.error_after)
        return any(place is not None for place in places)


DEMONSTRATION = Script(
    step_ms=((1, 20), (16, 26), (64, 40)),
    prefill_ms=5,
    acceptance=(Acceptance(rates=(0.7, 0.45, 0.3)),),
    answer_tokens=(60, 140),
)
"""What ``speclab mock`` serves without a script: three draft tokens a step."""


def seconds(step_ms: StepTime, rows: int) -> float:
    """Return how long a step of some rows takes, s."""
    if isinstance(step_ms, float | int):
        return step_ms / 1000
    sizes, times = zip(*step_ms, strict=True)
    if rows <= sizes[-1] or len(sizes) == 1:
        return float(np.interp(rows, sizes, times)) / 1000
    slope = (times[-1] - times[-2]) / (sizes[-1] - sizes[-2])
    return float(times[-1] + slope * (rows - sizes[-1])) / 1000


def read(file: Path) -> Script:
    """Return the script in a YAML or JSON file; `UserError` where it is none."""
    return validated(Script, read_yaml(file), file)
