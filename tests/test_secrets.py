"""Planted keys are found nowhere: not in what is recorded, logged, noted or printed. And a lab's text runs nothing."""

from __future__ import annotations

import ast
import base64
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest

import posing
from speclab import paths
from speclab.config import read_yaml
from speclab.errors import UserError

KEYS = {
    "OPENAI_API_KEY": "sk-planted/openai+key",
    "VLLM_API_KEY": "sk-planted-vllm-key",
    "HF_TOKEN": "hf_planted_hub_token",
    "AWS_SECRET_ACCESS_KEY": "planted-by-the-shell",
}
USER, PASSWORD = "me", "planted-pass:word"
PLANTED = (
    *KEYS.values(),
    *(quote(key, safe="") for key in KEYS.values()),
    PASSWORD,
    quote(PASSWORD, safe=""),
    base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode(),
)
LAB = """
title: Secrets
question: Where does a key turn up?
engine: vllm
target: {model: org/posed, tokens: smollm2}
arms: [baseline]
workloads: [chat]
concurrencies: [2]
phases: {length_s: 1.6, drop_first_s: 0.3, drop_last_s: 0.1}
sampling: {temperature: 0, max_tokens: 16, seed: 9}
"""
BASELINE = "lab: secrets\narm: baseline\nlabel: Baseline\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root" / "labs" / "secrets"
    folder.mkdir(parents=True)
    (folder / "lab.yml").write_text(LAB)
    (folder / "baseline.yml").write_text(BASELINE)
    return tmp_path / "root"


def speclab(root: Path, *arguments: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "speclab.cli", *arguments],
        capture_output=True, text=True, env={**os.environ, **KEYS, "SPECLAB_ROOT": str(root), **variables}, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def found(root: Path, *said: str) -> list[str]:
    """Return where planted secrets are: the files that were made, and what was printed."""
    files = {str(file): file.read_bytes() for file in root.rglob("*") if file.is_file()}
    assert {"cell.json", "requests.parquet", "baseline.cells.csv"} <= {Path(name).name for name in files}
    texts = files | {f"output {number}": text.encode() for number, text in enumerate(said)}
    return [f"{secret} in {name}" for name, text in texts.items() for secret in PLANTED if secret.encode() in text]


def test_g3_a_server_of_our_own_that_prints_its_variables_gives_no_key_away(root: Path, tmp_path: Path) -> None:
    (tmp_path / "machine").mkdir()
    variables = posing.environment(tmp_path / "machine")
    module = tmp_path / "machine" / "site" / "vllm" / "entrypoints" / "openai" / "api_server.py"
    dump = "import os\nprint(dict(os.environ), flush=True)\nassert 'VLLM_API_KEY' not in os.environ\n"
    module.write_text(dump + module.read_text(), encoding="utf-8")
    posed = {name: variables[name] for name in ("PATH", "PYTHONPATH")}
    proxy = f"http://{USER}:{quote(PASSWORD)}@proxy.example:3128"
    said = [
        speclab(root, *words, HTTPS_PROXY=proxy, **posed)
        for words in (
            ("run", "secrets", "--no-selftest"),
            ("show", "secrets"),
            ("check", "secrets"),
            ("run", "secrets", "--dry-run"),
        )
    ]
    (log,) = root.rglob("server.log")
    assert "'HF_TOKEN': '[redacted]'" in log.read_text()
    assert "http://proxy.example:3128" in log.read_text()
    assert found(root, *said) == []


class Echo(BaseHTTPRequestHandler):
    """Serves one model, and quotes the key that it was given in the error of every second completion."""

    asked = 0

    def do_GET(self) -> None:
        self._answer(200, {"data": [{"id": "org/posed"}]} if self.path == "/v1/models" else {})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        key = self.headers["Authorization"]
        Echo.asked += 1
        if Echo.asked > 2 and Echo.asked % 2:
            self._answer(429, {"error": {"message": f"quota exceeded for key {key}", "type": "quota"}})
            return
        usage = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
        choice = {"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}
        chunks = [{"choices": [choice], "usage": usage}, {"choices": [], "usage": usage}]
        if Echo.asked > 2 and Echo.asked % 4 == 0:
            chunks = [{"error": {"message": f"the key {key} has expired"}}]
        lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
        self._send(200, "text/event-stream", "".join([*lines, "data: [DONE]\n\n"]))

    def _answer(self, status: int, content: object) -> None:
        self._send(status, "application/json", json.dumps(content))

    def _send(self, status: int, kind: str, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        with suppress(ConnectionError):  # a cell that ends closes its connections
            self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def echoing() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_g3_a_server_that_quotes_its_key_gives_no_key_away(root: Path) -> None:
    given = ("--engine", "endpoint", "--arms", "baseline")
    notebook = [sys.executable, "-m", "papermill", "--engine", "speclab", "--no-progress-bar",
                str(paths.root() / "notebooks" / "run_arm.ipynb"), str(root / "out.ipynb"), "-p", "lab", "secrets",
                "-p", "engine", "endpoint"]  # fmt: skip
    with echoing() as host:
        url = f"http://{USER}:{quote(PASSWORD)}@{host}/v1"
        said = [speclab(root, "run", "secrets", "--no-selftest", *given, "--base-url", url)]
        said += [speclab(root, words, "secrets", "--engine", "endpoint") for words in ("show", "check")]
        made = subprocess.run(
            notebook, capture_output=True, text=True, check=False,
            env={**os.environ, **KEYS, "SPECLAB_ROOT": str(root), "SPECLAB_BASE_URL": url},
        )  # fmt: skip
    assert "quota exceeded for key" in said[0], said[0]
    assert (root / "out.ipynb").exists(), made.stderr
    assert found(root, *said, made.stdout, made.stderr) == []


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system", "!!python/name:os.system", "!!python/object:os.x"])
def test_a_lab_that_asks_for_an_object_is_refused_with_file_and_line(tmp_path: Path, tag: str) -> None:
    file = tmp_path / "lab.yml"
    file.write_text(f"title: x\nquestion: {tag} ['touch {tmp_path}/made']\n")
    with pytest.raises(UserError, match=r"lab\.yml: not YAML \(could not determine a constructor .* line 2"):
        read_yaml(file)
    assert list(tmp_path.iterdir()) == [file]


UNSAFE = (
    "os.system",
    "os.popen",
    "eval",
    "exec",
    "asyncio.create_subprocess_shell",
    "subprocess.getoutput",
    "yaml.unsafe_load",
    "yaml.full_load",
)


def calls(file: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def test_no_text_is_handed_to_a_shell_and_no_yaml_makes_objects() -> None:
    """Commands are lists of words: a lab's text in one of them is a word, whatever it holds."""
    package = Path(__file__).parents[1] / "src" / "speclab"
    started = []
    for file in sorted(package.rglob("*.py")):
        for name, call in calls(file):
            assert name not in UNSAFE, f"{file}: {name}"
            assert not any(keyword.arg == "shell" for keyword in call.keywords), file
            if name == "yaml.load":
                assert [ast.unparse(loader) for loader in call.args[1:]] == ["_Loader"], file
            if name in ("subprocess.Popen", "subprocess.run", "subprocess.check_output"):
                started.append(file.name)
                assert not isinstance(call.args[0], (ast.Constant, ast.JoinedStr)), f"{file}: a string, not words"
    assert {"guard.py", "vllm.py"} <= set(started)
