"""The servers of a sitting, driven with the simulator in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from speclab import lab as labs
from speclab.engines import simulated
from speclab.engines.base import Answer, EngineFailure, Opening
from speclab.load.closed_loop import CellLog
from speclab.metrics.checks.load import ERRORS
from speclab.prompts.base import Prompt
from speclab.record import store
from speclab.record.schema import CellRecord, CellSpec
from speclab.run import session
from speclab.run.plan import plan_arm

PHASES = {"length_s": 6, "drop_first_s": 1, "drop_last_s": 1}


def cells_of(arm: str, *concurrencies: int) -> list[CellSpec]:
    return list(plan_arm("lab09", arm, workloads=["chat"], concurrencies=concurrencies, phases=PHASES).cells)


def opening(arm: str, diary: list[str], lives_s: float = 1e9) -> Opening:
    """Return the simulator for one arm; each start of its server lives for `lives_s` and is noted, as is its end."""
    lab = labs.load("lab09")
    inner = simulated.opening(lab, lab.arm(arm), "chat")

    class Mortal:
        def __init__(self, engine: Any) -> None:
            self.engine, self.identity, self.dies_s = (
                engine,
                engine.identity,
                asyncio.get_running_loop().time() + lives_s,
            )

        async def send(self, answer: Any, sampling: Any) -> None:
            if asyncio.get_running_loop().time() > self.dies_s:
                raise EngineFailure("died mid-run", "the process is gone", log_tail="Killed")
            await self.engine.send(answer, sampling)

        async def read(self) -> Any:
            return await self.engine.read()

        def load(self, prompts: Any, sampling: Any) -> Any:
            return self.engine.load(prompts, sampling)

    @asynccontextmanager
    async def engine() -> AsyncIterator[Any]:
        async with inner.engine() as up:
            diary.append(f"{arm} up")
            try:
                yield Mortal(up)
            finally:
                diary.append(f"{arm} down")

    return Opening(inner.loop_factory, engine)


def refusing(arm: str) -> Opening:
    @asynccontextmanager
    async def engine() -> AsyncIterator[Any]:
        raise EngineFailure("out of memory", "no room for the weights")
        yield

    return Opening(opening(arm, []).loop_factory, engine)


def hold(openings: dict[str, Opening], cells: list[CellSpec], runs: Path) -> list[CellRecord]:
    session.hold(openings, cells, runs)
    return [store.read(store.cell_folder(runs, asked)).record for asked in cells]


def test_a_server_that_dies_costs_one_cell_and_is_started_again(tmp_path: Path) -> None:
    diary: list[str] = []
    records = hold({"baseline": opening("baseline", diary, lives_s=9)}, cells_of("baseline", 1, 4, 16), tmp_path)
    assert [record.status for record in records] == ["ok", "failed", "ok"]
    failure = records[1].failure
    assert failure is not None
    assert (failure.kind, failure.reason, failure.log_tail) == ("died mid-run", "the process is gone", "Killed")
    assert diary == ["baseline up", "baseline down"] * 2


def test_side_by_side_each_server_is_started_once_and_stays_up_to_the_end(tmp_path: Path) -> None:
    diary: list[str] = []
    arms = ("baseline", "ngram-k8")
    cells = [asked for pair in zip(*(cells_of(arm, 1, 4) for arm in arms), strict=True) for asked in pair]
    records = hold({arm: opening(arm, diary) for arm in arms}, cells, tmp_path)
    assert diary == ["baseline up", "ngram-k8 up", "ngram-k8 down", "baseline down"]
    assert [record.status for record in records] == ["ok"] * 4
    beside = [record.provenance.extra.get("beside") for record in records]
    assert beside == [None, ["baseline"], ["ngram-k8"], ["baseline"]], "the first cell had no other server beside it"


def test_an_arm_that_cannot_be_served_fails_alone(tmp_path: Path) -> None:
    diary: list[str] = []
    cells = [*cells_of("baseline", 1), *cells_of("ngram-k8", 1, 4), *cells_of("baseline", 4)]
    records = hold({"baseline": opening("baseline", diary), "ngram-k8": refusing("ngram-k8")}, cells, tmp_path)
    assert [record.status for record in records] == ["ok", "failed", "failed", "ok"]
    assert {record.provenance.identity.version for record in records[1:3]} == {"not started"}
    assert diary == ["baseline up", "baseline down"]


@pytest.mark.parametrize("has_ended", [True, False])
def test_g5_requests_that_broke_off_as_the_server_died_are_recorded_as_its_death(
    tmp_path: Path, has_ended: bool
) -> None:
    inner = opening("baseline", [])
    death = EngineFailure("died mid-run", "the server ended with status 137: killed", log_tail="Killed")

    class Breaking:
        def __init__(self, engine: Any) -> None:
            self.engine, self.identity, self.load = engine, engine.identity, engine.load

        async def send(self, answer: Any, sampling: Any) -> None:
            await self.engine.send(answer, sampling)
            answer.error = "the server closed the stream"

        async def read(self) -> Any:
            return await self.engine.read()

    @asynccontextmanager
    async def engine() -> AsyncIterator[Any]:
        async with inner.engine() as up:
            yield Breaking(up)

    async def ended() -> EngineFailure | None:
        return death if has_ended else None

    (record,) = hold({"baseline": Opening(inner.loop_factory, engine, ended=ended)}, cells_of("baseline", 1), tmp_path)
    assert record.failure is not None
    said = (record.failure.kind, record.failure.reason.partition(": killed")[0], record.failure.log_tail)
    if has_ended:
        assert said == ("died mid-run", "the server ended with status 137", "Killed")
    else:
        assert record.failure.kind == "client error"
        assert record.failure.reason.endswith("the first: the server closed the stream")


@pytest.mark.parametrize(
    ("failed", "of", "finished"), [(1, 100, True), (2, 100, False), (13, 17, False), (4, 4, False)]
)
def test_a_cell_with_too_many_failed_requests_is_not_finished(failed: int, of: int, finished: bool) -> None:
    prompt = Prompt("chat", "chat/01", "?")
    broken = [Answer(prompt, start_s=0.0, end_s=0.1, error="HTTP 429")] * failed
    served = [Answer(prompt, start_s=0.0, event_s=[8.0], event_tokens=[1])] * (of - failed)
    log = CellLog(start_s=0.0, answers=[*broken, *served], readings=[], lags_s=[])
    failure = session._failure(log, (1.0, 9.0))
    if finished:
        assert failure is None
    else:
        assert failure is not None
        assert failure.kind == "client error"
        assert failure.reason == f"{failed} of {of} requests failed; the first: HTTP 429"


@pytest.mark.parametrize(("moment_s", "is_hung"), [(0.5, True), (2.0, True), (4.9, True), (5.0, False), (9.0, True)])
def test_a_server_that_is_silent_to_the_end_of_the_window_hung(moment_s: float, is_hung: bool) -> None:
    answer = Answer(Prompt("chat", "chat/01", "?"), start_s=0.0, event_s=[moment_s], event_tokens=[1])
    failure = session._failure(CellLog(start_s=0.0, answers=[answer], readings=[], lags_s=[]), (1.0, 9.0))
    assert (failure is not None) == is_hung
    if failure is not None:
        assert (failure.kind, failure.reason) == ("hung", "no token in the last 4 s of the window, 1 requests sent")


def test_the_limit_of_failed_requests_is_the_checks() -> None:
    assert ERRORS.fails == session.MOST_FAILED


def test_a_record_counts_the_reads_that_brought_several_events(tmp_path: Path) -> None:
    inner = opening("baseline", [])

    class Merging:
        def __init__(self, engine: Any) -> None:
            self.engine, self.identity, self.read, self.load = engine, engine.identity, engine.read, engine.engine.load

        async def send(self, answer: Any, sampling: Any) -> None:
            answer.reads, answer.merged_reads = 5, 2
            await self.engine.send(answer, sampling)

    @asynccontextmanager
    async def engine() -> AsyncIterator[Any]:
        async with inner.engine() as up:
            yield Merging(up)

    (record,) = hold({"baseline": Opening(inner.loop_factory, engine)}, cells_of("baseline", 4), tmp_path)
    assert record.client_lag is not None
    assert record.client_lag.reads is not None
    assert record.client_lag.reads % 5 == 0
    assert record.client_lag.merged_reads == record.client_lag.reads * 2 // 5
