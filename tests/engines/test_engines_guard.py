from __future__ import annotations

import subprocess
import sys
import time

import psutil
import pytest

from speclab.engines.guard import is_alive, stop_tree

# a server whose worker ignores SIGTERM and has lost its parent by the time it is stopped
STUBBORN = """
import subprocess, sys
stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True)"
stubborn += "; time.sleep(1000)"
worker = subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE)
worker.stdout.readline()
print(worker.pid, flush=True)
{then}
"""


def start(then: str, *, guarded: bool) -> tuple[subprocess.Popen[bytes], int]:
    guard = ["-m", "speclab.engines.guard", sys.executable] if guarded else []
    process = subprocess.Popen(
        [sys.executable, *guard, "-c", STUBBORN.format(then=then)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def started_by(guard: int) -> list[psutil.Process]:
    return psutil.Process(guard).children(recursive=True)


def gone(pid: int, within_s: float = 30.0) -> bool:
    deadline_s = time.monotonic() + within_s
    while is_alive(pid) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    return not is_alive(pid)


def close(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        stream.close()


def test_a_deaf_worker_is_killed() -> None:
    process, worker = start("import time; time.sleep(1000)", guarded=False)
    stop_tree(process.pid, within_s=0.5)
    process.wait(timeout=30)
    assert not is_alive(worker)
    close(process)


def test_what_a_dead_leader_left_in_its_group_is_killed() -> None:
    process, worker = start("sys.exit(7)", guarded=False)
    assert process.wait() == 7
    assert is_alive(worker)
    stop_tree(process.pid, within_s=0.5)
    assert not is_alive(worker)
    close(process)


def test_the_guard_passes_on_the_status_and_clears_up() -> None:
    process, worker = start("worker.kill(); sys.exit(7)", guarded=True)
    assert process.wait(timeout=30) == 7
    assert not is_alive(worker)
    close(process)


def test_the_guard_ends_all_when_the_pipe_closes() -> None:
    process, worker = start("import time; time.sleep(1000)", guarded=True)
    assert process.stdin is not None
    psutil.Process(worker).kill()  # the deaf one would cost this test the guard's whole patience
    process.stdin.close()
    process.wait(timeout=30)
    assert not is_alive(worker)
    close(process)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent was killed")
def test_g4_a_server_is_told_to_end_when_its_guard_is_killed() -> None:
    process, worker = start("import time; time.sleep(1000)", guarded=True)
    server = next(child.pid for child in started_by(process.pid) if child.pid != worker)
    process.kill()
    assert gone(server)
    stop_tree(process.pid, within_s=0.5)
    process.wait(timeout=30)
    close(process)


def test_g4_what_a_killed_guard_left_is_found_by_its_session_and_killed() -> None:
    process, worker = start("import time; time.sleep(1000)", guarded=True)
    members = [child.pid for child in started_by(process.pid)]
    assert worker in members
    assert len(members) == 2
    process.kill()
    process.wait(timeout=30)
    assert is_alive(worker), "deaf to the signal, and its parent is gone"
    stop_tree(process.pid, within_s=0.5)
    assert [pid for pid in members if is_alive(pid)] == []
    close(process)
