"""Work spread over the processor's cores, by processes that never outlive the one that asked."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import TypeVar

ResultT = TypeVar("ResultT")


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Yield worker processes; left by an error or an interrupt they end at once, as where this process is killed.

    Parameters
    ----------
    workers : int
        Processes.
    """
    spawn = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
    watched, held = spawn.Pipe(duplex=False)
    with watched, held, ProcessPoolExecutor(workers, spawn, initializer=_end_with, initargs=(watched,)) as made:
        try:
            yield made
        except BaseException:
            made.shutdown(wait=False, cancel_futures=True)
            held.close()
            raise


def spread(
    work: Callable[..., ResultT], tasks: Sequence[tuple[object, ...]], workers: int | None = None
) -> list[ResultT]:
    """Return `work` of each task's arguments, in the tasks' order, by a `pool`.

    Parameters
    ----------
    work : callable
        A function of a module.
    tasks : sequence of tuple
        Arguments; the longest task first keeps all cores busy to the end.
    workers : int, optional
        Processes; as many as there are cores where not given. One runs all of them here.
    """
    workers = min(workers or cores(), len(tasks))
    if workers <= 1:
        return [work(*task) for task in tasks]
    with pool(workers) as made:
        started = [made.submit(work, *task) for task in tasks]
        return [each.result() for each in started]


def _end_with(watched: Connection) -> None:
    """End this worker as soon as the other end of a pipe is closed: by `pool`, or by the end of its process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends Ctrl-C to workers too

    def watch() -> None:
        watched.poll(None)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
