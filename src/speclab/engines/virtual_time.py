"""An event loop whose clock jumps to the next timer instead of waiting for it.

A minute of simulated serving then takes as long as its computations. Code in it uses asyncio as ever; what it may wait
for are timers and other tasks, not sockets, threads or processes.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Mapping
from typing import Any


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Event loop in virtual time: starts at 0 s, runs what is ready, then jumps to the next timer.

    Two runs of the same program see the same times. Where nothing is ready and no timer is set, the program would hang
    for ever: the loop raises `RuntimeError` instead.
    """

    def __init__(self) -> None:
        self._now_s = 0.0
        super().__init__(_JumpingSelector(self._jump))

    def time(self) -> float:
        """Return the virtual time, s."""
        return self._now_s

    def _jump(self, seconds: float) -> None:
        self._now_s += seconds


class _JumpingSelector(selectors.BaseSelector):
    """A real selector that never waits: the time it was asked to wait is handed to `jump`."""

    def __init__(self, jump: Callable[[float], None]) -> None:
        self._jump = jump
        self._real = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout == 0:
            # tasks are ready to run, and no socket is used in here: spare the system call
            return []
        ready = self._real.select(0)  # the loop's own wake-up pipe (signals)
        if ready:
            return ready
        if timeout is None:
            raise RuntimeError("virtual time stands still: every task waits, and no timer is set")
        self._jump(timeout)
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()
