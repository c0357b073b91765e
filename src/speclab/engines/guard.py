"""Runs a command and stops it with all its descendants, whatever becomes of the process that asked for it.

``python -m speclab.engines.guard COMMAND...`` starts the command in a session of its own, and ends it when standard
input closes. A pipe closes with the process that holds it, so that a server does not outlive a notebook kernel that was
killed: no handler in that kernel has to run. Exits with the command's own status, 128 + n where signal n ended it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import psutil

TERMINATE_WITHIN_S = 15.0
POLL_S = 0.05


def main(command: list[str]) -> int:
    """Run `command` until it ends or standard input closes, and return its exit status."""
    # Ctrl-C in a terminal is for the process that asked: it closes the pipe when it has cleaned up
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    threading.Thread(target=_stop_at_end_of_input, args=(child.pid,), daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: stop_tree(child.pid))
    status = child.wait()
    stop_tree(child.pid)  # what a server that died left behind
    return status if status >= 0 else 128 - status


def stop_tree(pid: int, within_s: float = TERMINATE_WITHIN_S) -> None:
    """Terminate, then kill, a session leader, its descendants, and whatever is left of its process group.

    Parameters
    ----------
    pid : int
        The leader's process id; also the id of its group, whose members may have lost their parent.
    within_s : float
        Time to end by themselves, s, before they are killed.
    """
    members = _tree(pid)
    for process in members:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    for process in _alive_after(members, within_s):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    _alive_after(members, within_s)


def _tree(pid: int) -> list[psutil.Process]:
    found = {process.pid: process for process in _descendants(pid)}
    for process in psutil.process_iter():
        with suppress(OSError):
            if process.pid != os.getpid() and os.getpgid(process.pid) == pid:
                found[process.pid] = process
    return list(found.values())


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        leader = psutil.Process(pid)
        return [leader, *leader.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _alive_after(processes: list[psutil.Process], within_s: float) -> list[psutil.Process]:
    deadline_s = time.monotonic() + within_s
    while (alive := [process for process in processes if is_alive(process.pid)]) and time.monotonic() < deadline_s:
        time.sleep(POLL_S)
    return alive


def is_alive(pid: int) -> bool:
    """Return whether a process runs; an ended one does not, though a parent that never asks keeps its entry."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _stop_at_end_of_input(pid: int) -> None:
    while os.read(0, 1024):
        pass
    stop_tree(pid)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
