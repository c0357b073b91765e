"""What a server's exit status and its log say about why it is gone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from speclab.engines.base import EngineFailure, FailureClass

TAIL_LINES = 40
"""Lines of a log that a record keeps."""
READ_BYTES = 1 << 18
"""How much of a log's end is read: a cause may stand far above the last lines, below other requests' tracebacks."""
REASON_LENGTH = 300
USAGE_ERROR = 2
"""What argparse exits with when it refuses a flag."""
KILLED = (128 + 9, 128 + 15)
SILENT_ENGINE = "the engine's process ended without a word (killed? out of memory?)"


@dataclass(frozen=True, slots=True)
class _Death:
    """One way in which vLLM ends, by the words of its log."""

    words: str
    kind: FailureClass
    remedy: str
    of_a_running_server: bool = False
    """Whether a server that has answered can still end so."""

    def speaks_in(self, line: str) -> bool:
        return re.search(self.words, line, re.IGNORECASE) is not None


_DEATHS = (
    _Death(
        r"No available memory for the cache|KV cache is needed, which is larger|"
        r"larger than the (?:maximum|available)[^.]* KV cache",
        "out of memory",
        "raise gpu-memory-utilization (on a CPU VLLM_CPU_KVCACHE_SPACE) or lower max-model-len",
    ),
    _Death(
        r"Free memory on device .* is less than|Available memory on node .* is less than",
        "out of memory",
        "end what else holds the memory, or lower gpu-memory-utilization",
    ),
    _Death(
        r"out of memory|OutOfMemoryError|MemoryError",
        "out of memory",
        "lower max-num-seqs, max-model-len or gpu-memory-utilization, or take a smaller model",
        of_a_running_server=True,
    ),
    _Death(
        r"max_model_len .* is greater than the derived max_model_len",
        "bad configuration",
        "lower max-model-len to what the model's config.json allows",
    ),
    _Death(
        r"gated repo|GatedRepoError|401 Client Error|403 Client Error",
        "bad configuration",
        "ask for access on the model's page, then set HF_TOKEN to a token that has it",
    ),
    _Death(
        r"is not a local folder and is not a valid model identifier|RepositoryNotFoundError|404 Client Error",
        "bad configuration",
        "mend the model's name (target.model, speculation.model)",
    ),
    _Death(
        r"does not appear to have a file named config\.json|Invalid repository ID or local directory",
        "bad configuration",
        "name a folder or a model of the hub that holds a config.json",
    ),
    _Death(
        r"Address already in use|EADDRINUSE|error while attempting to bind",
        "will not start",
        "something took the port in between: run again, each start takes a free one",
    ),
    _Death(
        r"No space left on device|Disk quota exceeded",
        "will not start",
        "free the disk that holds the models (HF_HOME), the compiler's cache (VLLM_CACHE_ROOT) or /tmp",
        of_a_running_server=True,
    ),
    _Death(
        r"We couldn't connect to|LocalEntryNotFoundError|OfflineModeIsEnabled|Max retries exceeded with url",
        "will not start",
        "fetch the model while the hub can be reached, or unset HF_HUB_OFFLINE",
    ),
    _Death(
        r"No CUDA GPUs are available|Failed to infer device type|driver .* is too old|driver version is insufficient",
        "will not start",
        "see whether nvidia-smi lists the GPU and its driver fits this vLLM (speclab doctor)",
    ),
)
"""The more specific first: a line is taken for the first that it fits."""

_BAD_CONFIGURATION = re.compile(
    r"error: (?:argument|unrecognized|ambiguous|the following)|ValidationError|ValueError|NotImplementedError|"
    r"KeyError|AssertionError|UserError"
)
_ERROR_LINE = re.compile(r"(?:^|[\s(])((?:[A-Za-z_.]*(?:Error|Exception)\b|error|ERROR): .+)")
_GOT_OVER = re.compile(r"^(?:\([^)]*pid=\d+\)\s*)*(?:DEBUG|INFO|WARNING)\b")
"""A line below the level of an error may quote one all the same."""
_PREFIX = re.compile(r"^(?:\([^)]*pid=\d+\)\s*)*(?:(?:DEBUG|INFO|WARNING|ERROR)\s+[\d-]+ [\d:]+ \[[^\]]*\]\s*)?")
"""``(EngineCore pid=7) INFO 01-16 17:16:49 [core.py:1510] ``"""
_WRAPPERS = re.compile(
    r"EngineDeadError|EngineCore encountered|Engine core init|See root cause|died unexpectedly|exited unexpectedly|"
    r"EngineGenerateError"
)
"""The front end's own words for "the engine's process failed"; the cause, where there is one, stands above them."""
_BAD_VALUE = re.compile(r"ValidationError: \d+ validation errors? for")
"""What was wrong stands in the line after this one."""


def text(log: Path, start: int = 0) -> str:
    """Return the end of a log, up to `READ_BYTES` of it.

    Parameters
    ----------
    log : Path
        The file; an absent one gives no text.
    start : int
        Offset in bytes before which the log tells of an earlier server.
    """
    try:
        with log.open("rb") as file:
            end = file.seek(0, 2)
            file.seek(max(start, end - READ_BYTES))
            return file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""


def tail(said: str, lines: int = TAIL_LINES) -> str:
    """Return the last lines of what a log says."""
    return "\n".join(said.splitlines()[-lines:])


def last_line(said: str) -> str:
    """Return the last line of a log that says something, without what a logger puts before it; empty without one."""
    lines = (_PREFIX.sub("", line).strip() for line in reversed(said.splitlines()))
    return next(filter(None, lines), "")


def misses_its_engine(said: str) -> bool:
    """Return whether a front end reports in its log that the engine's process failed."""
    return _WRAPPERS.search(said) is not None


def failure(status: int | None, said: str, *, started: bool) -> EngineFailure:
    """Return the failure of a server that has ended.

    Parameters
    ----------
    status : int or None
        Its exit status as its guard passes it on: 128 + n where signal n ended the server, -n where it ended the guard.
    said : str
        What its log says, as `text` returns it.
    started : bool
        Whether it had answered before.
    """
    log_tail = tail(said)
    if status is not None and status < 0:
        reason = f"the process that watches over the server was killed (signal {-status}; the kernel's killer of what "
        reason += "takes too much memory?), and the server was ended with it"
        return EngineFailure("died mid-run" if started else "will not start", reason, log_tail)
    lines = _error_lines(said)
    if known := _known(lines, running=started or status in KILLED):
        death, line = known
        kind: FailureClass = "died mid-run" if started and death.kind != "out of memory" else death.kind
        reason = f"{_short(line)}; {death.remedy}"
    else:
        kind, reason = _class(status, said, started), _short(_own(status, said, lines))
    return EngineFailure(kind, f"the server ended with status {status}: {reason}", log_tail)


def _error_lines(said: str) -> list[str]:
    """Return the engine's own lines that name an error, without what a logger puts before it."""
    lines = said.splitlines()
    named = [
        (number, match[1].strip())
        for number, line in enumerate(lines)
        if not _GOT_OVER.search(line) and (match := _ERROR_LINE.search(line))
    ]
    return [
        " ".join([line, *(after.strip() for after in lines[number + 1 : number + 2])])
        if _BAD_VALUE.search(line)
        else line
        for number, line in named
        if not _WRAPPERS.search(line)
    ]


def _known(lines: list[str], *, running: bool) -> tuple[_Death, str] | None:
    """Return the death that the last error tells of, or any of them where memory ran out, and its line.

    Errors before the last one may have been got over, as that of a hub that could not be asked for a file.
    """
    deaths = [death for death in _DEATHS if death.of_a_running_server or not running]
    for line in lines[-1:] + lines[::-1]:
        death = next((death for death in deaths if death.speaks_in(line)), None)
        if death is not None and (line == lines[-1] or death.kind == "out of memory"):
            return death, line
    return None


def _class(status: int | None, said: str, started: bool) -> FailureClass:
    if started:
        return "died mid-run"
    if status not in KILLED and (status == USAGE_ERROR or _BAD_CONFIGURATION.search(said)):
        return "bad configuration"
    return "will not start"


def _own(status: int | None, said: str, lines: list[str]) -> str:
    if status in KILLED:
        return "killed by a signal from outside (the kernel kills what takes too much memory)"
    if lines:
        return lines[-1]
    return SILENT_ENGINE if misses_its_engine(said) else "its log names no error"


def _short(line: str) -> str:
    return line if len(line) <= REASON_LENGTH else line[: REASON_LENGTH - 3] + "..."
