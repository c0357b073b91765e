"""Kills at drawn moments over a posed server: a few in every run of the tests, a hundred in a tier of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import killing

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent was killed")


def test_g4_g5_g12_a_few_kills_leave_nothing_torn_lost_or_running(tmp_path: Path) -> None:
    tally = killing.kill_often(killing.posed(tmp_path, moments_s=1.0), kills=4, seed=9)
    assert str(tally) == "4 kills: 0 torn, 0 lost, 0 left, 0 wrong reasons", tally.details
    assert tally.kills == dict.fromkeys(killing.VICTIMS, 1)


@pytest.mark.kills
def test_a_hundred_kills_leave_nothing_torn_lost_or_running(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tally = killing.kill_often(killing.posed(tmp_path), kills=100, seed=15)
    with capsys.disabled():
        print(f"\n{tally}", *tally.details, sep="\n")
    assert str(tally) == "100 kills: 0 torn, 0 lost, 0 left, 0 wrong reasons", tally.details
