"""Runs a command and stops it with all its descendants, whatever becomes of the process that asked for it.

``python -m speclab.engines.guard COMMAND...`` starts the command in a session of its own, and ends it when standard
input closes. A pipe closes with the process that holds it, so that a server does not outlive a notebook kernel that was
killed: no handler in that kernel has to run. Exits with the command's own status, 128 + n where signal n ended it.

The guard may be killed too (the kernel kills what takes too much memory). Linux then tells the command to end, and
whoever asked finds what is left by the session, which has the guard's process id: `stop_tree`.

What the command prints is passed on line by line, without the secrets that this process's variables hold.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

from speclab.engines import secrets

TERMINATE_WITHIN_S = 15.0
LEFT_BEHIND_WITHIN_S = 3.0
"""What a server that died left behind has nothing to finish, and its end is waited for."""
POLL_S = 0.05
PR_SET_PDEATHSIG = 1
"""``prctl(2)``: the signal that a process gets when its parent ends."""


def main(command: list[str]) -> int:
    """Run `command` until it ends or standard input closes, and return its exit status."""
    # Ctrl-C in a terminal is for the process that asked: it closes the pipe when it has cleaned up
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(PermissionError):  # it leads a session already
        os.setsid()
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        process_group=0,
        preexec_fn=_ending_with(os.getpid()),
    )
    assert child.stdout is not None
    hidden = secrets.of_environment(os.environ)
    passing_on = threading.Thread(target=_pass_on, args=(child.stdout.fileno(), hidden), daemon=True)
    passing_on.start()
    threading.Thread(target=_stop_at_end_of_input, daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: stop_tree(os.getpid()))
    status = child.wait()
    stop_tree(os.getpid(), LEFT_BEHIND_WITHIN_S)
    passing_on.join(TERMINATE_WITHIN_S)
    return status if status >= 0 else 128 - status


def _ending_with(parent: int) -> Callable[[], None] | None:
    """Return what a child calls before it becomes its command, so that it is told to end when its parent is killed.

    It is told to terminate: a front end that is killed outright would leave its engine's process behind.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl

    def ask_for_signal() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it was killed before the kernel knew
            os._exit(128 + signal.SIGTERM)

    return ask_for_signal


def stop_tree(pid: int, within_s: float = TERMINATE_WITHIN_S) -> None:
    """Terminate, then kill, a process, its descendants, and whatever is left of its group and session.

    The process that calls is left out; so a guard stops all but itself.

    Parameters
    ----------
    pid : int
        The process; also the id of its group and session, whose members may have lost their parent.
    within_s : float
        Time to end by themselves, s, before they are killed.
    """
    for end in (psutil.Process.terminate, psutil.Process.kill):
        _tell(pid, end, within_s)


def _tell(pid: int, end: Callable[[psutil.Process], None], within_s: float) -> None:
    """Tell each of them once to end, those too that others start meanwhile, and wait until all have."""
    deadline_s = time.monotonic() + within_s
    told: set[psutil.Process] = set()
    while True:
        members = _tree(pid)
        for process in members - told:
            with suppress(psutil.NoSuchProcess):
                end(process)
        told |= members
        if not any(is_alive(process.pid) for process in told) or time.monotonic() >= deadline_s:
            return
        time.sleep(POLL_S)


def _tree(pid: int) -> set[psutil.Process]:
    members = _descendants(pid)
    for other in psutil.pids():
        with suppress(OSError, psutil.NoSuchProcess):
            if pid in (os.getpgid(other), os.getsid(other)):
                members.add(psutil.Process(other))
    return {process for process in members if process.pid != os.getpid() and is_alive(process.pid)}


def _descendants(pid: int) -> set[psutil.Process]:
    try:
        leader = psutil.Process(pid)
        return {leader, *leader.children(recursive=True)}
    except psutil.NoSuchProcess:
        return set()


def is_alive(pid: int) -> bool:
    """Return whether a process runs; an ended one does not, though a parent that never asks keeps its entry."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _pass_on(source: int, hidden: frozenset[str]) -> None:
    """Write what comes from a pipe to standard output, line by line, until nobody holds its other end."""
    begun = b""
    while data := os.read(source, 1 << 16):
        *lines, begun = re.split(rb"(?<=[\r\n])", begun + data)
        _write(b"".join(lines), hidden)
    _write(begun, hidden)


def _write(data: bytes, hidden: frozenset[str]) -> None:
    shown = secrets.redacted(data.decode(errors="surrogateescape"), hidden).encode(errors="surrogateescape")
    with suppress(OSError):  # a full disk must not block the server
        while shown:
            shown = shown[os.write(1, shown) :]


def _stop_at_end_of_input() -> None:
    while os.read(0, 1024):
        pass
    stop_tree(os.getpid())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
