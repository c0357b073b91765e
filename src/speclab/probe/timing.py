"""How long a pass takes on its device: by the clock on a CPU, by the device's own events on a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from speclab.probe import plan

Pass = Callable[[], Any]


def seconds(run: Pass, device: str, *, graph: bool) -> list[float]:
    """Return the times of the repeats of a pass, s; a slower pass has fewer repeats.

    On a GPU the repeats are queued at once, so that no time between them is the host's; with `graph` each is one
    replay of a captured CUDA graph.

    Parameters
    ----------
    run : callable
        The pass; it leaves its result on the device.
    device : {'cpu', 'cuda'}
        Where it runs.
    graph : bool
        Whether to capture it; only on a GPU.
    """
    with torch.inference_mode():
        if device != "cuda":
            return _by_clock(run)
        return _by_events(_captured(run) if graph else run)


def _by_clock(run: Pass) -> list[float]:
    for _ in range(plan.WARM_UP - 1):
        run()
    return [_once(run) for _ in range(plan.repeats(_once(run)))]


def _once(run: Pass) -> float:
    began_s = time.perf_counter()
    run()
    return time.perf_counter() - began_s


def _by_events(run: Pass) -> list[float]:
    for _ in range(plan.WARM_UP - 1):
        run()
    (last_s,) = _queued(run, 1)
    return _queued(run, plan.repeats(last_s))


def _queued(run: Pass, times: int) -> list[float]:
    events = [torch.cuda.Event(enable_timing=True) for _ in range(times + 1)]
    torch.cuda.synchronize()
    run()  # not counted: the device was idle when it was launched
    events[0].record()
    for event in events[1:]:
        run()
        event.record()
    torch.cuda.synchronize()
    return [events[n].elapsed_time(events[n + 1]) / 1e3 for n in range(times)]


def _captured(run: Pass) -> Pass:
    """Return the replay of a pass as a CUDA graph; kernels are chosen in a pass on a side stream before."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(plan.WARM_UP):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    replay: Pass = graph.replay
    return replay
