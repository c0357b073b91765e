from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from speclab.errors import UserError
from speclab.record import lock

HOLDER = """
import sys
from pathlib import Path
from speclab.record import lock
with lock.held(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_run_is_kept_out_and_a_killed_one_lets_go(tmp_path: Path) -> None:
    folder = tmp_path / "lab" / "arm"
    command = [sys.executable, "-c", HOLDER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(UserError, match="another run is at work on this arm"), lock.held(folder):
            pytest.fail("two runs hold one arm")
        holder.kill()
        holder.wait()
    with lock.held(folder):
        assert (folder / lock.LOCK_FILE).exists()


def test_two_arms_are_held_at_once_and_one_is_let_go_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), lock.held(tmp_path / "a"), lock.held(tmp_path / "b"):
        raise ZeroDivisionError
    with lock.held(tmp_path / "a"), lock.held(tmp_path / "b"):
        pass


def test_a_folder_that_cannot_be_made_is_the_users_to_mend(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="could not be written"), lock.held(tmp_path / "file" / "arm"):
        pytest.fail("there is no folder to hold")
