"""The servers that an advice asks for, as lines to paste."""

from __future__ import annotations

import shlex

from speclab.engines import vllm
from speclab.findings.schedule import KEY, Schedule
from speclab.lab import Arm, Lab


def words(lab: Lab, arm: Arm, ranges: Schedule | None = None) -> list[str]:
    """Return the command that serves an arm, with vLLM's schedule where one is given.

    Raises
    ------
    ValueError
        A schedule for an arm that does not speculate.
    """
    if ranges is not None and arm.speculation is None:
        raise ValueError(f"{arm.arm} has no speculation to schedule")
    extra = {} if ranges is None else {KEY: [list(each) for each in ranges]}
    return ["vllm", "serve", lab.target.model, *vllm.flags(lab, arm, **extra)]


def line(lab: Lab, arm: Arm, ranges: Schedule | None = None) -> str:
    """Return the same as one line for a shell, with the lab's environment variables before it."""
    variables = [f"{name}={shlex.quote(value)}" for name, value in lab.environment.items()]
    return " ".join([*variables, shlex.join(words(lab, arm, ranges))])
