"""What the fault tests act on: a sweep in a process of its own, its server's processes, the folder that it writes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import httpx2
import psutil

from speclab.engines import counters, vllm
from speclab.engines.base import Reading
from speclab.engines.guard import is_alive
from speclab.record import lock, store
from speclab.record.cell import Cell
from speclab.record.schema import CellRecord

START_WITHIN_S = 300.0
END_WITHIN_S = 60.0
PROBE_TOKENS = 4
"""What the probe of a new server generates: more than a few times this is a cell's."""

FoundT = TypeVar("FoundT")


def until(found: Callable[[], FoundT | None], within_s: float, what: str) -> FoundT:
    """Ask again and again until there is an answer, which a deadline bounds."""
    deadline_s = time.monotonic() + within_s
    while time.monotonic() < deadline_s:
        answer = found()
        if answer:
            return answer
        time.sleep(0.2)
    raise AssertionError(f"not within {within_s:g} s: {what}")


def below(pid: int) -> list[psutil.Process]:
    """Return a process's descendants; the one that Python's multiprocessing keeps for itself is none."""
    with suppress(psutil.NoSuchProcess):
        found = psutil.Process(pid).children(recursive=True)
        return [process for process in found if not any("resource_tracker" in word for word in words(process))]
    return []


def words(process: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        return process.cmdline()
    return []


def served_by(pid: int) -> list[psutil.Process]:
    """Return vLLM's own processes among the descendants of one: those below the guard."""
    guards = [process for process in below(pid) if "speclab.engines.guard" in words(process)]
    return [process for guard in guards for process in below(guard.pid)]


def port_of(pid: int) -> str | None:
    for process in served_by(pid):
        line = words(process)
        if "--port" in line:
            return line[line.index("--port") + 1]
    return None


def reading_of(pid: int) -> Reading | None:
    port = port_of(pid)
    with suppress(httpx2.HTTPError):
        if port is not None:
            return counters.reading(get(port, "metrics").text, at_s=0.0)
    return None


def get(port: str | int, page: str, key: str | None = None) -> httpx2.Response:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return httpx2.get(f"http://{vllm.HOST}:{port}/{page}", headers=headers, timeout=5, trust_env=False)


@dataclass
class Folder:
    """The records' folder, which can run full."""

    path: Path
    is_disk: bool

    @property
    def arm(self) -> Path:
        return self.path / "runs" / f"vllm-{vllm.device()}" / "faults" / "baseline"

    def fill(self) -> None:
        if not self.is_disk:  # nobody may mount here: a file where the arm's folder was
            self.arm.rename(self.arm.with_name("aside"))
            self.arm.write_text("in the way")
            return
        with suppress(OSError), (self.path / "filler").open("wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass

    def free(self) -> None:
        (self.path / "filler" if self.is_disk else self.arm).unlink()
        if not self.is_disk:
            self.arm.with_name("aside").rename(self.arm)

    def records(self) -> dict[str, bytes]:
        files = [file for name in ("cell.json", "requests.parquet") for file in self.arm.glob(f"[!.]*/{name}")]
        return {str(file.relative_to(self.arm)): file.read_bytes() for file in files}

    def cells(self) -> dict[str, Cell]:
        return {file.parent.name: store.read(file.parent) for file in self.arm.glob("[!.]*/cell.json")}

    def is_ok(self, cell: str) -> bool:
        with suppress(OSError, ValueError):
            return CellRecord.model_validate_json((self.arm / cell / "cell.json").read_bytes()).status == "ok"
        return False

    def half_written(self) -> list[str]:
        return [path.name for path in self.arm.glob(".*") if path.name != lock.LOCK_FILE]


@dataclass
class Sweep:
    """A command that runs a lab, from the outside."""

    process: subprocess.Popen[bytes]
    said: Path
    pids: set[int]

    def until(self, holds: Callable[[], bool], what: str) -> None:
        def found() -> bool:
            assert self.process.poll() is None, self.said.read_text()
            self.pids |= {process.pid for process in below(self.process.pid)}
            return holds()

        until(found, START_WITHIN_S, what)

    def is_loaded(self) -> bool:
        """Return whether the server has generated more than the probe of a new one asks for."""
        reading = reading_of(self.process.pid)
        return reading is not None and (reading.generation_tokens or 0) > 8 * PROBE_TOKENS

    def end(self, within_s: float = END_WITHIN_S) -> Ending:
        started_s = time.monotonic()
        status = self.process.wait(within_s)
        took_s = time.monotonic() - started_s
        left = {pid for pid in self.pids if is_alive(pid)}
        return Ending(status, self.said.read_text(), took_s, len(self.pids), left)


@dataclass(frozen=True)
class Ending:
    status: int
    said: str
    took_s: float
    processes: int
    left: set[int]


@contextmanager
def speclab_run(root: Path, *given: str, said: Path, **variables: str) -> Iterator[Sweep]:
    with said.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "speclab.cli", "run", "faults", *given],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "SPECLAB_ROOT": str(root), **variables},
            # a shell that runs the tests in the background has its children ignore Ctrl-C
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    try:
        yield Sweep(process, said, set())
    finally:
        process.kill()
        process.wait()
