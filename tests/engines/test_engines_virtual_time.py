from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from speclab.engines.virtual_time import VirtualTimeLoop


def run(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main())


def test_sleeping_moves_the_clock_and_nothing_else() -> None:
    async def main() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        before = loop.time()
        await asyncio.sleep(1e6)
        return before, loop.time()

    assert run(main) == (0, 1e6)


def test_timers_run_in_order_at_their_own_times() -> None:
    seen: list[tuple[str, float]] = []

    async def wait(name: str, seconds: float, times: int) -> None:
        for _ in range(times):
            await asyncio.sleep(seconds)
            seen.append((name, asyncio.get_running_loop().time()))

    async def main() -> None:
        await asyncio.gather(wait("slow", 0.75, 2), wait("fast", 0.5, 3))

    run(main)
    assert seen == [("fast", 0.5), ("slow", 0.75), ("fast", 1.0), ("slow", 1.5), ("fast", 1.5)]
    first = list(seen)
    seen.clear()
    run(main)
    assert seen == first


def test_timeouts_count_in_virtual_time() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await asyncio.get_running_loop().create_future()
        return asyncio.get_running_loop().time()

    assert run(main) == 3600


def test_waiting_for_nothing_is_an_error_instead_of_a_hang() -> None:
    loop = VirtualTimeLoop()
    for_ever = loop.create_future()
    with pytest.raises(RuntimeError, match="virtual time stands still"):
        loop.run_until_complete(for_ever)
    loop.close()


def test_a_call_from_another_thread_wakes_it() -> None:
    async def main() -> str:
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[str] = loop.create_future()
        loop.call_soon_threadsafe(answered.set_result, "awake")
        return await answered

    assert run(main) == "awake"
