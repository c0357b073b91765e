"""A machine with an H100 and vLLM, both of them posed: nothing that is measured on it is theirs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

VERSION = "0.33.0"
GPU = "NVIDIA H100 80GB HBM3"
BADGE = f"measured (vLLM {VERSION}, {GPU})"
PROFILE: dict[str, Any] = {
    "version": VERSION,
    "steps": {
        "baseline": {"step_ms": [[1, 25], [16, 60], [64, 100], [256, 400]], "answer_tokens": [4, 24]},
        "draft_model": {
            "step_ms": [[1, 38], [4, 60], [16, 200], [64, 400]],
            "answer_tokens": [4, 24],
            "acceptance": [
                {"prompt_has": "Add type hints", "rates": [0.87, 0.76, 0.66]},
                {"prompt_has": "def ", "rates": [0.83, 0.69, 0.58]},
                {"rates": [0.79, 0.65, 0.53]},
            ],
        },
        "eagle3": {
            "step_ms": [[1, 29], [16, 72], [64, 165], [256, 1050]],
            "answer_tokens": [4, 24],
            "acceptance": [
                {"prompt_has": "Add type hints", "rates": [0.84, 0.70, 0.58]},
                {"prompt_has": "def ", "rates": [0.79, 0.61, 0.47]},
                {"rates": [0.75, 0.55, 0.40]},
            ],
        },
        "ngram-8": {
            "step_ms": [[1, 29], [16, 140], [64, 300], [256, 1300]],
            "answer_tokens": [4, 24],
            "acceptance": [
                {
                    "prompt_has": "Add type hints",
                    "rates": [0.61, 0.56, 0.52, 0.49, 0.45, 0.42, 0.39, 0.36],
                    "draft_rate": 0.43,
                },
                {
                    "prompt_has": "def ",
                    "rates": [0.48, 0.37, 0.29, 0.23, 0.19, 0.15, 0.12, 0.10],
                    "draft_rate": 0.25,
                },
                {"rates": [0.35, 0.23, 0.15, 0.10, 0.07, 0.05, 0.03, 0.02], "draft_rate": 0.15},
            ],
        },
        "ngram": {
            "step_ms": [[1, 28], [16, 68], [64, 130], [256, 640]],
            "answer_tokens": [4, 24],
            "acceptance": [
                {"prompt_has": "Add type hints", "rates": [0.61, 0.56], "draft_rate": 0.43},
                {"prompt_has": "def ", "rates": [0.48, 0.37], "draft_rate": 0.25},
                {"rates": [0.35, 0.23], "draft_rate": 0.15},
            ],
        },
    },
}
"""Steps some four times as long as an H100's: this client, on a busy machine, must read every one of them in time."""


SERVER = """
import sys
from speclab.engines import mock_vllm

mock_vllm.main([{profile!r}, *sys.argv[1:]])
"""
SERVER_WITH_ENGINE = """
import os, signal, subprocess, sys, threading
from speclab.engines import mock_vllm

deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()"
engine = subprocess.Popen(["VLLM::EngineCore", "-c", deaf], executable=sys.executable)

def watch():
    engine.wait()
    print("WARNING 01-16 17:16:49 [core_client.py:817] [shutdown] MPClient: engine core exited unexpectedly",
          flush=True)
    print("ERROR 01-16 17:16:49 [async_llm.py:906] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered "
          "an issue. See stack trace (above) for the root cause.", flush=True)
    os._exit(0)

threading.Thread(target=watch, daemon=True).start()
mock_vllm.main([{profile!r}, *sys.argv[1:]])
"""
"""Its engine is a process of its own, as vLLM's is: deaf to a request to end, and missed by the server when it ends."""


def environment(folder: Path, *, with_engine: bool = False) -> dict[str, str]:
    """Return the variables of a process on that machine; its package and its command lie in `folder`.

    The package ``vllm`` and the command ``nvidia-smi`` are found as the real ones are.
    """
    profile = folder / "profile.json"
    profile.write_text(json.dumps(PROFILE), encoding="utf-8")
    module = folder / "site" / "vllm" / "entrypoints" / "openai" / "api_server.py"
    module.parent.mkdir(parents=True)
    for package in (module.parent, *module.parent.parents[:2]):
        (package / "__init__.py").touch()
    module.write_text(
        (SERVER_WITH_ENGINE if with_engine else SERVER).format(profile=str(profile)),
        encoding="utf-8",
    )
    about = folder / "site" / f"vllm-{VERSION}.dist-info" / "METADATA"
    about.parent.mkdir()
    about.write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}\n", encoding="utf-8")
    smi = folder / "bin" / "nvidia-smi"
    smi.parent.mkdir()
    smi.write_text(f"#!/bin/sh\necho '{GPU}'\n", encoding="utf-8")
    smi.chmod(0o755)
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(folder / "site"), os.environ.get("PYTHONPATH")])),
        "PATH": os.pathsep.join([str(smi.parent), os.environ["PATH"]]),
    }
