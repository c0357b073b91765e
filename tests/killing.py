"""Kills without a word, at drawn moments, and what must hold after each of them.

One sweep after another over a lab of short cells, while somebody kills the run, the guard of its server, the server, or
the server's engine. After each kill: every cell that can be read is whole, none that was there is gone, no process of
what was killed lives on, and the reason that is recorded is the one that was.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import psutil

import posing
from speclab.engines.guard import is_alive
from speclab.errors import UserError
from speclab.record import store

Victim = Literal["run", "guard", "server", "engine"]
VICTIMS: tuple[Victim, ...] = ("run", "guard", "server", "engine")
REASONS = {
    "guard": r"the process that watches over the server was killed \(signal 9",
    "server": r"ended with status 137: killed by a signal from outside",
    "engine": r"the engine's process ended without a word",
}
"""What a record says, by what was killed."""
LAB = """
title: Kills
question: What is left when something is killed?
engine: vllm
target: {model: org/posed, tokens: smollm2}
arms: [baseline]
workloads: [chat, completion, revision]
concurrencies: [1, 2, 3, 4]
repeats: 2
phases: {length_s: 1.6, drop_first_s: 0.3, drop_last_s: 0.1}
sampling: {temperature: 0, max_tokens: 64, seed: 9}
"""
BASELINE = "lab: kills\narm: baseline\nlabel: Baseline\n"
CELLS = 24


@dataclass
class Tally:
    """What went wrong over all kills, one line each."""

    kills: Counter[str] = field(default_factory=Counter)
    torn: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    wrong_reasons: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        bad = {"torn": self.torn, "lost": self.lost, "left": self.left, "wrong reasons": self.wrong_reasons}
        return f"{self.kills.total()} kills: " + ", ".join(f"{len(lines)} {name}" for name, lines in bad.items())

    @property
    def details(self) -> list[str]:
        return [*self.torn, *self.lost, *self.left, *self.wrong_reasons]


@dataclass(frozen=True)
class Rig:
    """Where sweeps are run, and by what."""

    root: Path
    lab: str
    cells: int
    environment: dict[str, str]
    moments_s: float
    """Kills fall within so long after what they hit is there."""
    within_s: float
    """How long an end, or a start, may take."""


def posed(folder: Path, moments_s: float = 2.0) -> Rig:
    """Return a rig whose server is a mock with an engine's process below it."""
    root = folder / "root"
    lab = root / "labs" / "kills"
    lab.mkdir(parents=True)
    (lab / "lab.yml").write_text(LAB)
    (lab / "baseline.yml").write_text(BASELINE)
    (folder / "machine").mkdir()
    environment = posing.environment(folder / "machine", with_engine=True)
    return Rig(root, "kills", CELLS, {**environment, "SPECLAB_ROOT": str(root)}, moments_s, within_s=60.0)


def kill_often(rig: Rig, kills: int, seed: int) -> Tally:
    """Kill so many times, each victim in turn, and return what was found after each."""
    draw, tally = random.Random(seed), Tally()
    victims = [VICTIMS[number % len(VICTIMS)] for number in range(kills)]
    draw.shuffle(victims)
    folder = 0
    while tally.kills.total() < kills:
        out = rig.root / "data" / f"{folder:03d}"
        with sweep(rig, out) as run:
            while tally.kills.total() < kills and run.poll() is None:
                victim = victims[tally.kills.total()]
                process = _found(run, victim, rig)
                if process is None or not _wait(draw.uniform(0, rig.moments_s), run):
                    break
                _kill(victim, process, run, out, rig, tally)
            _end(run)
        if not _failed(out) and len(_cells(out)) >= rig.cells:
            folder += 1  # nothing is left to be run in this one
    return tally


@contextmanager
def sweep(rig: Rig, out: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run what is missing of the lab in a process of its own."""
    what = (rig.lab, "--arms", "baseline", "--out", str(out), "--no-selftest")
    command = [sys.executable, "-m", "speclab.cli", "run", *what]
    with (rig.root / "said.txt").open("ab") as said:
        run = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=rig.environment, start_new_session=True
        )
    try:
        yield run
    finally:
        _end(run)


def _kill(
    victim: Victim, process: psutil.Process, run: subprocess.Popen[bytes], out: Path, rig: Rig, tally: Tally
) -> None:
    before, failed = _cells(out), _failed(out)
    below = _below(run.pid) if victim == "run" else [member for member in _below(run.pid) if member.pid != process.pid]
    ours = below if victim == "run" else [member for guard in _guards(below, process) for member in guard]
    with suppress(psutil.NoSuchProcess):
        process.kill()
    tally.kills[victim] += 1
    number = f"kill {tally.kills.total()}, of the {victim}"
    _until(lambda: not any(is_alive(member.pid) for member in ours), rig.within_s)
    tally.left += [f"{number}: {member.pid} lives" for member in ours if is_alive(member.pid)]
    if victim == "run":
        run.wait()
    else:  # recorded, or nothing was left to be measured
        _until(lambda: _failed(out) != failed or run.poll() is not None, rig.within_s)
        for cell, reason in _failed(out).items():
            if failed.get(cell) != reason and not re.search(REASONS[victim], reason):
                tally.wrong_reasons.append(f"{number}: {cell}: {reason}")
    after = _cells(out)
    tally.torn += [f"{number}: {cell}: {state}" for cell, state in after.items() if state.startswith("torn")]
    tally.lost += [f"{number}: {cell}" for cell in before if cell not in after]


def _guards(below: list[psutil.Process], killed: psutil.Process) -> Iterator[list[psutil.Process]]:
    """Yield what must end with a process that was killed: its server's whole tree, from the guard on."""
    for process in below:
        if _is(process, "guard") or process.pid == killed.pid:
            yield [process, *_below(process.pid)]
    if _is(killed, "guard"):
        yield _below(killed.pid)


def _found(run: subprocess.Popen[bytes], victim: Victim, rig: Rig) -> psutil.Process | None:
    """Return the process to be killed once it is there; None where the run ends before."""

    def there() -> psutil.Process | None:
        return psutil.Process(run.pid) if victim == "run" else next(
            (process for process in _below(run.pid) if _is(process, victim)), None
        )  # fmt: skip

    def done() -> bool:
        return run.poll() is not None or there() is not None

    _until(done, rig.within_s)
    with suppress(psutil.NoSuchProcess):
        return there() if run.poll() is None else None
    return None


def _is(process: psutil.Process, victim: Victim) -> bool:
    with suppress(psutil.Error):
        words = " ".join(process.cmdline())
        if victim == "guard":
            return "-m speclab.engines.guard" in words
        if victim == "server":
            return ("api_server" in words or "VLLM::APIServer" in words) and "-m speclab.engines.guard" not in words
        return "VLLM::EngineCore" in words or "VLLM::EngineCore" in process.name()
    return False


def _below(pid: int) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).children(recursive=True)
    return []


def _cells(out: Path) -> dict[str, str]:
    """Return the state of each cell that is there: ``ok``, ``failed``, or why it cannot be read."""
    states = {}
    for file in out.glob(f"runs/*/*/*/[!.]*/{store.RECORD_FILE}"):
        try:
            states[file.parent.name] = store.read(file.parent).record.status
        except UserError as error:
            states[file.parent.name] = f"torn: {error}"
    return states


def _failed(out: Path) -> dict[str, str]:
    """Return when and why each cell failed that did."""
    failed = {}
    for file in out.glob(f"runs/*/*/*/[!.]*/{store.RECORD_FILE}"):
        with suppress(UserError):
            record = store.read_record(file.parent)
            if record.failure is not None:
                failed[file.parent.name] = (
                    f"{record.provenance.ended_at} {record.failure.kind}: {record.failure.reason}"
                )
    return failed


def _wait(moment_s: float, run: subprocess.Popen[bytes]) -> bool:
    """Wait for the moment of a kill, and return whether there is still a run."""
    with suppress(subprocess.TimeoutExpired):
        run.wait(moment_s)
    return run.poll() is None


def _until(holds: Callable[[], bool], within_s: float) -> None:
    deadline_s = time.monotonic() + within_s
    while not holds() and time.monotonic() < deadline_s:
        time.sleep(0.02)


def _end(run: subprocess.Popen[bytes]) -> None:
    if run.poll() is None:
        run.send_signal(signal.SIGINT)
    try:
        run.wait(60)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
