from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "speclab.cli", "mock"]


def test_mock_serves_a_script_on_this_machine_alone_and_says_where(tmp_path: Path) -> None:
    script = tmp_path / "script.yml"
    script.write_text("model: scripted\nversion: 0.33.0\n")
    with subprocess.Popen([*COMMAND, script, "--port", "0"], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            said = server.stdout.readline()
            assert "no model" in said
            url = said.split()[-1]
            assert url.startswith("http://127.0.0.1:")
            with urllib.request.urlopen(f"{url}/models", timeout=20) as response:
                assert [model["id"] for model in json.load(response)["data"]] == ["scripted"]
        finally:
            server.terminate()


@pytest.mark.parametrize(
    ("script", "said"), [("step_ms: slow", "script.yml: step_ms"), ("hang_afer: 1", "did you mean 'hang_after'?")]
)
def test_mock_names_a_slip_in_a_script(tmp_path: Path, script: str, said: str) -> None:
    (tmp_path / "script.yml").write_text(script)
    done = subprocess.run([*COMMAND, tmp_path / "script.yml"], capture_output=True, text=True)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_mock_names_a_port_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run([*COMMAND, "--port", port], capture_output=True, text=True)
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
