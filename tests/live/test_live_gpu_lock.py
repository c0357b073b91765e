"""``constraints-gpu.txt`` before pip and the package index: it resolves, to itself; nothing is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from speclab import paths

RESOLVE_WITHIN_S = 500.0
RECORDED = json.loads((paths.root() / "tests" / "lock" / "gpu_metadata.json").read_text(encoding="utf-8"))
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(RECORDED["environment"]["python_version"] != HERE, reason="it was resolved for another Python"),
    pytest.mark.skipif(sys.platform != "linux", reason="there is no vLLM for a GPU on this system"),
]


@pytest.fixture
def report(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if "live" not in request.config.getoption("markexpr"):
        pytest.skip("asks the package index: make test-live")
    return tmp_path / "report.json"


def test_pip_resolves_it_to_itself(report: Path) -> None:
    words = ["install", "--quiet", "--dry-run", "--ignore-installed", "--report", str(report)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *words, "-c", "constraints-gpu.txt", ".[gpu]"],
        cwd=paths.root(), capture_output=True, text=True, check=False, timeout=RESOLVE_WITHIN_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = [entry["metadata"] for entry in json.loads(report.read_text(encoding="utf-8"))["install"]]
    chosen = {canonicalize_name(metadata["name"]): metadata["version"] for metadata in said}
    locked = {name: package["version"] for name, package in RECORDED["packages"].items()}
    assert {name: version for name, version in chosen.items() if name in locked} == locked
    assert set(chosen) - set(locked) <= {"speclab", "setuptools"}
