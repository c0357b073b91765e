from __future__ import annotations

import hashlib
import itertools
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from speclab import whole
from speclab.engines.base import Answer, EngineIdentity
from speclab.errors import UserError
from speclab.lab import Phases, Sampling
from speclab.load.closed_loop import CellLog
from speclab.prompts.base import Prompt
from speclab.record import provenance, store
from speclab.record.schema import REQUEST_COLUMNS, CellRecord, CellSpec, Failure

IDENTITY = EngineIdentity(engine="vllm", version="vLLM 0.32.0", device="test-cpu")


def asked(concurrency: int = 2) -> CellSpec:
    return CellSpec(
        lab="mini", arm="baseline", workload="chat", concurrency=concurrency, repeat=0, engine="vllm",
        device="test-cpu", target="a/b", phases=Phases(length_s=10, drop_first_s=1, drop_last_s=1),
        sampling=Sampling(), speculation=None, server={"seed": 1}, environment={}, prompts_sha256="0", code_version="1",
    )  # fmt: skip


def record(request: CellSpec, failure: Failure | None = None) -> CellRecord:
    return CellRecord(
        asked=request, asked_sha256=request.sha256, status="failed" if failure else "ok", failure=failure,
        window_s=request.phases.window_s, provenance=provenance.of(IDENTITY, provenance.now()),
    )  # fmt: skip


def log() -> CellLog:
    ended = Answer(
        Prompt("chat", "chat/01", "?"), start_s=100.5, event_s=[100.75, 101.0, 101.5], event_tokens=[1, 4, 2],
        prompt_tokens=20, output_tokens=7, end_s=101.5, finish_reason="stop", text="seven tokens",
    )  # fmt: skip
    cut_off = Answer(Prompt("chat", "chat/02", "?"), start_s=101.0, event_s=np.array([101.25]), event_tokens=[1])
    broken = Answer(Prompt("chat", "chat/03", "?"), start_s=102.0, end_s=102.1, error="HTTP 500")
    return CellLog(start_s=100.0, answers=[ended, cut_off, broken], readings=[], lags_s=[])


def test_a_cell_comes_back_as_it_was_written(tmp_path: Path) -> None:
    folder = store.cell_folder(tmp_path, asked())
    assert folder == tmp_path / "vllm-test-cpu" / "mini" / "baseline" / "chat-c002-r0"
    store.write(folder, record(asked()), store.to_table(log(), warm_up=1))
    cell = store.read(folder)
    of_this_run = {"provenance": cell.record.provenance, "requests_sha256": cell.record.requests_sha256}
    assert cell.record == record(asked()).model_copy(update=of_this_run)
    content = (folder / store.REQUESTS_FILE).read_bytes()
    assert cell.record.requests_sha256 == hashlib.sha256(content).hexdigest()
    assert list(cell.requests.columns) == REQUEST_COLUMNS.names
    assert cell.requests["start_s"].tolist() == [0.5, 1.0, 2.0]
    assert cell.requests["event_us"][0].tolist() == [250_000, 500_000, 1_000_000]
    assert cell.requests["event_tokens"][0].tolist() == [1, 4, 2]
    assert cell.requests["event_us"][1].tolist() == [250_000]
    assert cell.requests["event_us"][2].tolist() == []
    assert cell.requests["warm_up"].tolist() == [True, False, False]
    assert np.isnan(cell.requests["end_s"][1])
    assert cell.requests["error"][2] == "HTTP 500"


def test_a_cell_is_finished_only_when_whole_successful_and_asked_for_in_this_way(tmp_path: Path) -> None:
    folder = tmp_path / "cell"
    assert not store.is_finished(folder, asked())
    store.write(folder, record(asked(), Failure(kind="hung", reason="silent")), store.to_table(log(), 1))
    assert not store.is_finished(folder, asked()), "a failed cell is tried again"
    store.write(folder, record(asked()), store.to_table(log(), 1))
    assert store.is_finished(folder, asked())
    assert not store.is_finished(folder, asked(concurrency=4)), "another request has another hash"
    (folder / store.REQUESTS_FILE).unlink()
    assert not store.is_finished(folder, asked())
    with pytest.raises(UserError, match=r"requests.parquet: no such file; delete this folder and run its lab again"):
        store.read(folder)


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        (store.RECORD_FILE, b'{"asked"', "cell.json.*not a cell record"),
        (store.RECORD_FILE, b"{}", "cell.json: asked: not a cell record"),
        (store.REQUESTS_FILE, b"PAR1 and no more", "requests.parquet: not a request table"),
    ],
)
def test_a_half_written_file_is_named(tmp_path: Path, file: str, content: bytes, expected: str) -> None:
    folder = tmp_path / "cell"
    store.write(folder, record(asked()), store.to_table(log(), 1))
    (folder / file).write_bytes(content)
    assert not store.is_finished(folder, asked())
    with pytest.raises(UserError, match=expected):
        store.read(folder)


def test_writing_leaves_no_trace_of_an_interrupted_write(tmp_path: Path) -> None:
    folder = tmp_path / "cell"
    leftover = tmp_path / f".cell.{os.getpid()}.new"
    leftover.mkdir()
    (leftover / "half").write_text("a write that was cut off")
    store.write(folder, record(asked()), store.to_table(log(), 1))
    assert [path.name for path in tmp_path.iterdir()] == ["cell"]
    assert store.read_record(folder).asked.concurrency == 2


def test_what_other_processes_left_is_cleared(tmp_path: Path) -> None:
    store.write(tmp_path / "cell", record(asked()), store.to_table(log(), 1))
    (tmp_path / ".cell.999999.new").mkdir()
    (tmp_path / ".other.999999.old").write_text("a file where a folder was")
    (tmp_path / ".lock").touch()
    store.clear(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "cell"]


class Killed(BaseException):
    """What a kill looks like to the code that it meets: nothing of ours runs after it."""


@contextmanager
def killed_at(step: int) -> Iterator[None]:
    """Raise at the n-th line that the store runs, wherever that is."""
    lines = itertools.count()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != store.__file__:
            return None
        if event == "line" and next(lines) == step:
            raise Killed
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("one_step", [True, False], ids=["one step", "two renames"])
def test_g12_a_kill_at_any_step_of_a_write_leaves_the_old_cell_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_step: bool
) -> None:
    if not one_step:  # a file system that cannot do it, as those of a network
        monkeypatch.setattr(whole, "exchange", lambda *_: False)
    old, new = record(asked(), Failure(kind="hung", reason="old")), record(asked(), Failure(kind="hung", reason="new"))
    table = store.to_table(log(), 1)
    seen = []
    for step in itertools.count():
        arm = tmp_path / str(step)
        store.write(arm / "cell", old, table)
        try:
            with killed_at(step):
                store.write(arm / "cell", new, table)
        except Killed:
            pass
        else:
            break
        kept = store.read(arm / "cell").record.failure
        assert kept is not None
        store.clear(arm)
        assert [path.name for path in arm.iterdir()] == ["cell"]
        assert store.read(arm / "cell").record.failure == kept, "what was read is what a run finds"
        seen.append(kept.reason)
    assert seen == sorted(seen, reverse=True), "the old one up to a step, and the new one from there on"
    assert set(seen) == {"old", "new"}


def test_g12_a_write_that_fails_between_two_renames_puts_the_old_cell_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole, "exchange", lambda *_: False)
    folder = tmp_path / "cell"
    store.write(folder, record(asked()), store.to_table(log(), 1))
    rename = Path.rename

    def full(self: Path, target: Path) -> Path:
        if self.name.endswith(".new"):
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(UserError, match="No space left"):
        store.write(folder, record(asked(), Failure(kind="hung", reason="new")), store.to_table(log(), 1))
    assert [path.name for path in tmp_path.iterdir()] == ["cell"]
    assert store.is_finished(folder, asked())


def damaged(content: bytes) -> bytes:
    """Flip bytes of the column chunks and leave the file's end, with its metadata, as it was."""
    return content[:100] + bytes(byte ^ 0x5A for byte in content[100:400]) + content[400:]


def other_columns() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": [1]}), sink)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("kept_hash", [True, False])
@pytest.mark.parametrize("damage", ["middle", "columns"])
def test_a_table_that_is_not_what_was_written_is_noticed(tmp_path: Path, damage: str, kept_hash: bool) -> None:
    folder = tmp_path / "cell"
    store.write(folder, record(asked()), store.to_table(log(), 1))
    file, record_file = folder / store.REQUESTS_FILE, folder / store.RECORD_FILE
    if not kept_hash:  # a record from before the hash was kept: valid while its table can be read
        content = json.loads(record_file.read_text())
        del content["requests_sha256"]
        record_file.write_text(json.dumps(content))
        assert store.is_finished(folder, asked())
    file.write_bytes(damaged(file.read_bytes()) if damage == "middle" else other_columns())
    pq.read_schema(file)  # the file's end is whole
    assert not store.is_finished(folder, asked())
    with pytest.raises(UserError, match=r"requests.parquet: not a request table \(.*\); delete this folder"):
        store.read(folder)


def test_a_cell_replaces_a_file_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "cell").touch()
    store.write(tmp_path / "cell", record(asked()), store.to_table(log(), 1))
    assert [path.name for path in tmp_path.iterdir()] == ["cell"]
    assert store.is_finished(tmp_path / "cell", asked())


def test_a_failed_write_keeps_the_finished_cell(tmp_path: Path) -> None:
    folder = tmp_path / "cell"
    store.write(folder, record(asked()), store.to_table(log(), 1))
    blocked = tmp_path / "cell" / store.RECORD_FILE / "below-a-file"
    with pytest.raises(UserError, match="could not be written"):
        store.write(blocked, record(asked()), store.to_table(log(), 1))
    assert store.is_finished(folder, asked())


def test_the_hash_depends_on_everything_that_was_asked() -> None:
    base = asked()
    assert base.sha256 == asked().sha256
    for change in ({"server": {"seed": 2}}, {"repeat": 1}, {"prompts_sha256": "1"}, {"code_version": "2"}):
        assert base.model_copy(update=change).sha256 != base.sha256


def test_an_empty_cell_has_a_table_of_the_same_shape() -> None:
    table = store.to_table(CellLog(start_s=0.0, answers=[], readings=[], lags_s=[]), warm_up=0)
    assert table.num_rows == 0
    assert table.schema == REQUEST_COLUMNS
    assert isinstance(table, pa.Table)
