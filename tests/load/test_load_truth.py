"""What the stub is scripted to do is what the tables say: load, record and metrics, all real, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from speclab import prompts
from speclab.engines.base import Opening
from speclab.engines.endpoint import Endpoint
from speclab.engines.mock import MockServer, Script
from speclab.engines.mock_batch import Sent
from speclab.engines.mock_rows import Row
from speclab.engines.mock_script import Acceptance
from speclab.lab import Phases, Speculation
from speclab.metrics import summary
from speclab.metrics.counters import gained
from speclab.metrics.summary import Summary
from speclab.metrics.window import CellWindow, cut
from speclab.record import store
from speclab.record.schema import CellSpec
from speclab.run import session
from speclab.run.plan import plan_arm
from wired_time import WiredTimeLoop

PHASES = Phases(length_s=6.0, drop_first_s=1.5, drop_last_s=0.5)
STEP_MS = 37.3
LOADS = [(1, 0), (4, 1), (16, 3), (64, 5), (256, 8)]


@dataclass
class Measured:
    """One cell, and what its server sent in the window."""

    script: Script
    summary: Summary
    view: CellWindow
    sent: Sent
    answers: dict[str, list[int]]
    """Tokens of each event of each prompt's answer, as scripted."""


def script_of(k: int) -> Script:
    rates = tuple(0.9 * 0.85**position for position in range(k))
    return Script(step_ms=STEP_MS, acceptance=(Acceptance(rates=rates),), answer_tokens=(40, 160))


def asked(concurrency: int, k: int) -> CellSpec:
    [spec] = plan_arm("lab09", "baseline", workloads=["chat"], concurrencies=[concurrency], repeats=1).cells
    speculates = Speculation(method="eagle3", model="a/head", num_speculative_tokens=k) if k else None
    given = {"speculation": speculates, "phases": PHASES, "engine": "endpoint", "device": "here"}
    return spec.model_copy(update=given)


def measured(script: Script, spec: CellSpec, runs: Path) -> Measured:
    """Run one cell against a stub as `speclab run` would, and read it as `speclab show` would."""
    servers: list[MockServer] = []

    @asynccontextmanager
    async def engine() -> AsyncIterator[Endpoint]:
        async with MockServer(script) as server, Endpoint(server.url, script.model, "here") as endpoint:
            servers.append(server)
            yield endpoint

    session.hold({spec.arm: Opening(WiredTimeLoop, engine)}, [spec], runs)
    cell = store.read(store.cell_folder(runs, spec))
    # the clock starts at 0 and nothing but the load lets it go on: the window's borders are the loop's times
    sent = servers[0].batch.sent(*PHASES.window_s)
    questions = prompts.load(spec.workload, spec.sampling.seed)
    answers = {prompt.id: scripted(script, prompt.text) for prompt in (*questions.warm_up, *questions.measured)}
    return Measured(script, summary.of(cell), cut(cell), sent, answers)


@pytest.fixture(scope="module", params=LOADS, ids=lambda load: f"{load[0]} in flight, {load[1] + 1} tokens an event")
def load(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    concurrency, k = request.param
    return measured(script_of(k), asked(concurrency, k), tmp_path_factory.mktemp("runs"))


def scripted(script: Script, text: str) -> list[int]:
    """Return the tokens of each event of an answer, from the script alone."""
    row, tokens = Row(script, text, {"max_tokens": 512}, 0, lambda _: None), []
    while row.left:
        row.step()
        tokens.append(row.tokens)
    return tokens


def events_of(view: CellWindow, row: int) -> tuple[np.ndarray, list[int]]:
    mine = view.all_events.row == row
    return view.all_events.time_s[mine], view.all_events.tokens[mine].tolist()


def test_every_event_of_every_answer_is_what_was_scripted(load: Measured) -> None:
    requests = load.view.requests.reset_index(drop=True)
    ended = requests.index[requests["output_tokens"].notna()]
    assert len(ended) >= load.view.record.asked.concurrency
    for number, request in requests.iterrows():
        times, tokens = events_of(load.view, number)
        whole = load.answers[request["prompt_id"]]
        assert tokens == whole[: len(tokens)]
        assert np.diff(times) == pytest.approx(STEP_MS / 1000, abs=2e-6)
    assert [len(events_of(load.view, number)[1]) for number in ended] == [
        len(load.answers[prompt_id]) for prompt_id in requests.loc[ended, "prompt_id"]
    ]


def test_throughput_is_what_was_sent_in_the_window_requests_that_cross_its_borders_included(load: Measured) -> None:
    opens_s, closes_s = PHASES.window_s
    requests = load.view.requests
    crosses = (requests["start_s"] < closes_s) & ~(requests["end_s"] < closes_s)
    assert crosses.sum() == load.view.record.asked.concurrency
    tokens = load.summary.row["system_throughput"] * (closes_s - opens_s)
    assert tokens == pytest.approx(load.sent.tokens, abs=1e-6)
    assert len(load.view.events) == load.sent.events


def test_time_per_token_is_what_was_scripted(load: Measured) -> None:
    ended = load.view.ended
    assert len(ended) > 0
    of_answers = [load.answers[prompt_id] for prompt_id in ended["prompt_id"]]
    steps, tokens = (sum(of(answer) - 1 for answer in of_answers) for of in (len, sum))
    assert load.summary.row["time_per_output_token"] == pytest.approx(STEP_MS * steps / tokens, rel=1e-4)
    assert load.summary.row["step_gap_p50"] == pytest.approx(STEP_MS, rel=1e-4)
    assert load.summary.row["step_time"] == pytest.approx(STEP_MS, rel=1e-3)


def test_acceptance_is_what_was_sent(load: Measured) -> None:
    k, decode = load.script.positions, load.view.between_readings.decode
    assert len(decode) > 0
    if k is None:
        assert load.summary.positions.empty
        assert load.summary.row["tokens_per_step"] == 1
        return
    # each decode step is drafted: an event of n tokens had n - 1 accepted
    gain = gained(load.view.record)
    assert gain is not None
    assert gain.drafts == len(decode)
    assert gain.draft_tokens == k * len(decode)
    assert gain.accepted_by_position == tuple((decode.tokens > position + 1).sum() for position in range(k))
    assert load.summary.row["reported_acceptance_length"] == pytest.approx(decode.tokens.mean(), rel=1e-9)
    assert load.summary.row["draft_coverage"] == 1


def test_no_check_fails(load: Measured) -> None:
    checks = load.summary.checks
    assert len(checks) > 10
    assert checks.loc[checks["verdict"] == "FAIL", ["check", "reason"]].to_dict("records") == []
