"""Two folders change places in one step, where the system can."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from speclab import whole


@pytest.mark.skipif(sys.platform not in ("linux", "darwin"), reason="no such call on this system")
def test_two_folders_change_places(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        (folder / folder.name).touch()
    if not whole.exchange(one, other):
        pytest.skip("this file system cannot")
    assert [path.name for path in one.iterdir()] == ["other"]
    assert [path.name for path in other.iterdir()] == ["one"]


def test_what_is_not_there_cannot_change_places(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    with pytest.raises(FileNotFoundError):
        whole.exchange(tmp_path / "one", tmp_path / "absent")
