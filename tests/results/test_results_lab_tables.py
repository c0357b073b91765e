from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from speclab.errors import UserError
from speclab.results import lab_tables, source

KEYS = {"arm": "baseline", "workload": "chat", "concurrency": 1, "repeat": 0, "source": "simulated (h100-sxm)"}


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """The tables of one arm without drafts, as they are kept."""
    cells = pd.DataFrame([{**KEYS, "status": "ok", "x": 0.5}, {**KEYS, "concurrency": 4, "status": "ok", "x": 1 / 3}])
    checks = pd.DataFrame([{**KEYS, "check": "usage", "reason": 'a "word",\nand a line'}])
    answers = pd.DataFrame([{**KEYS, "prompt_id": "chat/00", "answers": 1, "steps": 95, "tokens": 95}])
    blocks = pd.DataFrame([{**KEYS, "block": 0, "seconds": 5.2, "tokens": 95.0}])
    tables = lab_tables.Tables(cells=cells, positions=pd.DataFrame(), checks=checks, answers=answers, blocks=blocks)
    into = lab_tables.folder(tmp_path, "lab09", "simulated-h100-sxm")
    lab_tables.write(tables, into, "baseline")
    return into


def read(kept: Path) -> lab_tables.Tables:
    return source.read("lab09", "simulated", data=kept.parents[2])


def test_tables_come_back_as_they_were_written(kept: Path) -> None:
    assert sorted(path.name for path in kept.iterdir()) == [f"baseline.{kind}.csv" for kind in sorted(lab_tables.KINDS)]
    tables = read(kept)
    assert tables.cells["x"].tolist() == [0.5, 0.333333]
    assert tables.checks["reason"].tolist() == ['a "word",\nand a line']
    assert tables.positions.empty
    assert tables.answers["steps"].tolist() == [95]
    assert tables.blocks["seconds"].tolist() == [5.2]


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("cells", b""),
        ("cells", b"\n"),
        ("cells", b"arm,workload,concurrency,repeat,source,status,x\nbaseline,chat,1,0,sim"),
        ("cells", b"arm,workload,concurrency,repeat,source,status,x\nbaseline,chat,1,0,s,ok,1\nbaseline,chat\n"),
        ("cells", b"a,b\n1,2,3\n4\n1,2,3,4,5\n"),
        ("cells", b"arm,workload,concurrency,repeat,source\nbaseline,chat,1,0,s\n"),
        ("cells", b"\xff\xfe\x00"),
        ("checks", b"check,verdict\nusage,PASS\n"),
        ("checks", None),
        ("positions", b""),
    ],
)
def test_a_damaged_table_is_named_with_the_run_that_makes_it_again(
    kept: Path, kind: str, content: bytes | None
) -> None:
    file = kept / f"baseline.{kind}.csv"
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    with pytest.raises(UserError) as error:
        read(kept)
    message = str(error.value)
    assert message.startswith(f"{file}: not a table of results (")
    again = f"speclab run lab09 --engine simulated --arms baseline --out {kept.parents[2]}"
    assert message.endswith(f"make it again: {again}")
    assert "\n" not in message


def test_a_folder_that_cannot_be_written_is_the_users_to_mend(kept: Path) -> None:
    tables = read(kept)
    with pytest.raises(UserError, match=r"the tables could not be written \(File exists\)"):
        lab_tables.write(tables, kept / "baseline.cells.csv", "baseline")
    (kept / "ngram-k2.cells.csv").mkdir()
    with pytest.raises(UserError, match=r"the tables could not be written \(Is a directory\)"):
        lab_tables.write(tables, kept, "ngram-k2")
    assert not list(kept.glob(".*"))
