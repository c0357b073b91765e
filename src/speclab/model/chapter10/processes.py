"""Spread independent simulations over the processor's cores."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

ResultT = TypeVar("ResultT")


def spread(
    work: Callable[..., ResultT], tasks: Sequence[tuple[object, ...]], workers: int | None = None
) -> list[ResultT]:
    """Return `work` of each task's arguments, in the tasks' order.

    Parameters
    ----------
    work : callable
        A function of a module.
    tasks : sequence of tuple
        Arguments; the longest task first keeps all cores busy to the end.
    workers : int, optional
        Processes; as many as there are cores where not given. One runs all of them here.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = min(workers or cores, len(tasks))
    if workers <= 1:
        return [work(*task) for task in tasks]
    spawn = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
    with ProcessPoolExecutor(workers, spawn) as pool:
        started = [pool.submit(work, *task) for task in tasks]
        return [each.result() for each in started]
