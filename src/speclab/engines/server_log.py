"""What a server's exit status and the end of its log say about why it is gone."""

from __future__ import annotations

import re
from pathlib import Path

from speclab.engines.base import EngineFailure, FailureClass

TAIL_LINES = 40
KILLED = (137, 128 + 15, -9, -15)
USAGE_ERROR = 2
"""What argparse exits with when it refuses a flag."""

_OUT_OF_MEMORY = re.compile(
    r"out of memory|OutOfMemoryError|MemoryError|No available memory for the cache|"
    r"Free memory on device .* is less than|larger than the (?:maximum|available)[^.]* KV cache|"
    r"KV cache is needed, which is larger|Available memory on node .* is less than",
    re.IGNORECASE,
)
_BAD_CONFIGURATION = re.compile(
    r"error: (?:argument|unrecognized|ambiguous|the following)|ValidationError|ValueError|NotImplementedError|"
    r"OSError: \S+ is not a local folder|KeyError|AssertionError|UserError"
)
_ERROR_LINE = re.compile(r"(?:^|[\s(])((?:[A-Za-z_.]*(?:Error|Exception)\b|error): .+)")
_WRAPPERS = ("EngineCore", "Engine core", "See root cause", "EngineDeadError")
"""The front end's own words for "the engine's process failed"; the cause stands above them."""


def tail(log: Path, start: int = 0, lines: int = TAIL_LINES) -> str:
    """Return the last lines of a log.

    Parameters
    ----------
    log : Path
        The file; an absent one gives an empty tail.
    start : int
        Offset in bytes before which the log tells of an earlier server.
    lines : int
        How many lines at most.
    """
    return "\n".join(_lines(log, start)[-lines:])


def failure(status: int | None, log_tail: str, *, started: bool) -> EngineFailure:
    """Return the failure of a server that has ended.

    Parameters
    ----------
    status : int or None
        Its exit status; 128 + n, or -n, where signal n ended it.
    log_tail : str
        The end of its log.
    started : bool
        Whether it had answered before.
    """
    return EngineFailure(_class(status, log_tail, started), _reason(status, log_tail), log_tail)


def _class(status: int | None, log_tail: str, started: bool) -> FailureClass:
    if _OUT_OF_MEMORY.search(log_tail):
        return "out of memory"
    if started:
        return "died mid-run"
    if status == USAGE_ERROR or _BAD_CONFIGURATION.search(log_tail):
        return "bad configuration"
    return "will not start"


def _reason(status: int | None, log_tail: str) -> str:
    """Return the last line that names an error, the engine's own before the front end's report of it."""
    found = [match.group(1).strip() for line in log_tail.splitlines() if (match := _ERROR_LINE.search(line))]
    own = [line for line in found if not any(word in line for word in _WRAPPERS)]
    said = (own or found or ["its log names no error"])[-1]
    if status in KILLED and not found:
        said = "killed by a signal from outside (the kernel kills what takes too much memory)"
    return f"the server ended with status {status}: {said if len(said) <= 300 else said[:297] + '...'}"


def _lines(log: Path, start: int) -> list[str]:
    try:
        with log.open("rb") as file:
            file.seek(start)
            return file.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return []
