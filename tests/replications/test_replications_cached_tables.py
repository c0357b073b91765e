from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from speclab import paths
from speclab.errors import UserError
from speclab.replications.chapter10 import cached_tables, compared, draws, gaps


def test_the_committed_tables_are_of_this_model() -> None:
    assert cached_tables.stale() == [], "run `speclab model keep` and commit data/derived/chapter10"
    points = cached_tables.read("points")
    assert len(points) == 3 * 5 * 6
    assert not points.drop(columns="assumed").isna().any().any()
    assert compared(points)["verdict"].notna().sum() == 3 * 5 * 5 * 6


def test_a_kept_table_reads_back_as_it_was_made() -> None:
    pd.testing.assert_frame_equal(cached_tables.read("gaps"), gaps(), check_exact=True)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with the labs and figures of this one, and no tables."""
    for folder in ("labs", "data/published"):
        (tmp_path / folder).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / folder).symlink_to(paths.root() / folder)
    monkeypatch.setenv("SPECLAB_ROOT", str(tmp_path))
    return tmp_path


def test_a_table_is_made_again_only_when_something_changed(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    assert cached_tables.stale() == list(cached_tables.TABLES)
    with pytest.raises(UserError, match="run `speclab model keep`"):
        cached_tables.read("draws")
    monkeypatch.setattr(cached_tables, "TABLES", {"draws": draws})
    assert cached_tables.refresh(progress=told.append) == ["draws"]
    assert told == ["draws"]
    assert cached_tables.refresh(progress=told.append) == []
    file = checkout / "data" / "derived" / "chapter10" / "draws.csv"
    first = file.read_text()

    file.write_text(first.replace("0.6", "0.61"))
    assert cached_tables.stale() == ["draws"]
    assert cached_tables.refresh() == ["draws"]
    assert file.read_text() == first

    (checkout / "data" / "derived" / "chapter10" / "made_from.json").write_text("{")
    assert cached_tables.stale() == ["draws"]


def test_an_unknown_table() -> None:
    with pytest.raises(UserError, match=r"no kept table 'sweeps'; there are: draws"):
        cached_tables.read("sweeps")
