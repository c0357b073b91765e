"""`spread`: results in order, and no worker that outlives an interrupted run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from operator import truediv
from pathlib import Path

import pytest

from speclab.processes import spread

SLEEPERS = """
import signal, sys
from speclab.processes import spread
import {name}

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and so would this
    spread({name}.sleep, [(sys.argv[1],)] * 4, workers=2)
"""

WORK = """
import os, time
from pathlib import Path

def sleep(folder):
    Path(folder, str(os.getpid())).touch()
    time.sleep(600)
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_results_stand_in_the_order_of_the_tasks(workers: int) -> None:
    assert spread(truediv, [(6, 3), (1, 4), (9, 2)], workers) == [2.0, 0.25, 4.5]


def test_a_task_that_fails_ends_the_others_with_its_error() -> None:
    with pytest.raises(ZeroDivisionError):
        spread(truediv, [(1, 0), (1, 1), (2, 1)], workers=2)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks Linux which processes are there")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_outlives_a_run_that_is_stopped(sent: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "sleeping_work.py").write_text(WORK)
    (tmp_path / "run.py").write_text(SLEEPERS.format(name="sleeping_work"))
    pids = tmp_path / "pids"
    pids.mkdir()
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "run.py"), str(pids)], stderr=subprocess.DEVNULL, env=os.environ
    ) as run:
        workers = _until(lambda: [int(each.name) for each in pids.iterdir()], lambda found: len(found) == 2)
        try:
            run.send_signal(sent)
            assert run.wait(timeout=20) != 0
        finally:
            run.kill()
    assert _until(lambda: [pid for pid in workers if _runs(pid)], lambda left: not left) == []


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def _until(look: Callable[[], list[int]], enough: Callable[[list[int]], bool], within_s: float = 20.0) -> list[int]:
    """Return what is seen as soon as it is enough, or at the end of the time."""
    end = time.monotonic() + within_s
    while not enough(seen := look()) and time.monotonic() < end:
        time.sleep(0.05)
    return seen
