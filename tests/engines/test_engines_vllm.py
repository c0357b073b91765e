"""How vLLM is started and ended, shown on stand-ins for the server; vLLM itself is in tests/live."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from speclab import lab as labs
from speclab.engines import synthetic_cpu, vllm
from speclab.engines.base import Answer, EngineFailure
from speclab.engines.guard import is_alive
from speclab.errors import UserError
from speclab.lab import Arm, Lab, Sampling, Speculation, Target
from speclab.prompts.base import Prompt


def a_lab(model: str = "org/model", **given: Any) -> Lab:
    return Lab(
        title="t",
        question="q",
        name="here",
        target=Target(model=model, tokens="smollm2"),
        arms=("baseline",),
        workloads=("chat",),
        concurrencies=(1,),
        **given,
    )


def an_arm(**given: Any) -> Arm:
    return Arm(lab="here", arm="baseline", label="Baseline", **given)


def test_the_command_of_lab09s_eagle3_is_the_one_a_reader_can_paste() -> None:
    lab = labs.load("lab09")
    words = vllm.command(lab, lab.arm("eagle3-k3"), port=8000)
    assert words[:-1] == [
        "python",
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--model",
        "meta-llama/Llama-3.1-8B-Instruct",
        "--host",
        "127.0.0.1",
        "--port",
        "8000",
        "--max-model-len",
        "4096",
        "--max-num-seqs",
        "256",
        "--max-num-batched-tokens",
        "8192",
        "--no-enable-prefix-caching",
        "--no-async-scheduling",
        "--stream-interval",
        "1",
        "--cudagraph-capture-sizes",
        *map(str, lab.server["cudagraph-capture-sizes"]),  # type: ignore[arg-type]
        "--seed",
        "9",
        "--speculative-config",
    ]
    assert json.loads(words[-1]) == {
        "method": "eagle3",
        "num_speculative_tokens": 3,
        "model": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B",
    }


def test_the_baseline_has_the_same_flags_and_no_speculation() -> None:
    lab = labs.load("lab09")
    baseline, ngram = (vllm.command(lab, lab.arm(name), port=8000) for name in ("baseline", "ngram-k8"))
    assert ngram[: len(baseline)] == baseline
    assert "--speculative-config" not in baseline


def test_flags_become_words_and_the_arm_overrides_the_lab() -> None:
    lab = a_lab(server={"enforce-eager": True, "enable-prefix-caching": False, "seed": 9, "dtype": "bfloat16"})
    arm = an_arm(server={"seed": 10, "cudagraph-capture-sizes": [1, 2], "compilation-config": {"level": 3}})
    words = vllm.command(lab, arm, port=1, python="/opt/python")
    assert words[0] == "/opt/python"
    assert words[words.index("--port") + 2 :] == [
        "--enforce-eager",
        "--no-enable-prefix-caching",
        "--seed",
        "10",
        "--dtype",
        "bfloat16",
        "--cudagraph-capture-sizes",
        "1",
        "2",
        "--compilation-config",
        '{"level": 3}',
    ]


def test_a_model_folder_that_is_not_there_is_one_line_with_the_command_that_makes_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPECLAB_ROOT", str(tmp_path))
    lab = a_lab(model="models/smollm2-135m-instruct")
    with pytest.raises(UserError, match=r"target.model: no model in models/smollm2.*speclab weights smollm2"):
        vllm.opening(lab, an_arm(), tmp_path / "log", python="other")
    drafting = an_arm(speculation=Speculation(method="eagle3", num_speculative_tokens=3, model="models/head"))
    with pytest.raises(UserError, match=r"baseline.yml: speculation.model: no model in models/head"):
        vllm.opening(a_lab(), drafting, tmp_path / "log", python="other")


def test_the_servers_environment_is_the_labs_over_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("LD_PRELOAD", "mine.so")
    variables = vllm.environment(a_lab(environment={"HF_HUB_OFFLINE": "1"}), an_arm())
    assert (variables["HF_HUB_OFFLINE"], variables["LD_PRELOAD"]) == ("1", "mine.so")
    assert variables["PATH"] == os.environ["PATH"]


@pytest.mark.parametrize("by_the_lab", [True, False])
def test_g8_a_server_of_our_own_asks_for_no_key(monkeypatch: pytest.MonkeyPatch, by_the_lab: bool) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "sk-for-another-server")
    monkeypatch.setenv("HF_TOKEN", "hf_for-the-hub")
    variables = vllm.environment(a_lab(environment={"VLLM_API_KEY": "sk-x"} if by_the_lab else {}), an_arm())
    assert "VLLM_API_KEY" not in variables
    assert variables["HF_TOKEN"] == "hf_for-the-hub"  # gated models need it


def test_only_an_arm_with_forced_acceptance_switches_the_plugin_on() -> None:
    lab = labs.load("cpu-smollm2")
    on = {name: vllm.environment(lab, lab.arm(name)).get(synthetic_cpu.SWITCH) for name in lab.arms}
    assert on.pop("eagle3-forced") == "1"
    assert set(on.values()) == {None}
    words = vllm.command(lab, lab.arm("eagle3-forced"), port=1)
    config = json.loads(words[words.index("--speculative-config") + 1])
    assert config["rejection_sample_method"] == "synthetic"
    assert config["synthetic_acceptance_rates"] == [0.745, 0.545, 0.404]


SERVING = """
import asyncio, subprocess, sys
from speclab.engines.mock import MockServer, Script

async def main():
    port = int(sys.argv[sys.argv.index("--port") + 1])
    print("starting on", port, flush=True)
    worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    print("worker", worker.pid, flush=True)
    async with MockServer(Script(model="org/model", fault_from={dies_at}, close_after=1), port) as server:
        while len(server.seen.prompts) <= {dies_at}:
            await asyncio.sleep(0.01)
    print("RuntimeError: worker 0 fell over", flush=True)
    sys.exit(7)

asyncio.run(main())
"""
NEVER = 10**9


def stand_in(folder: Path, script: str) -> str:
    """Return an "interpreter" that runs `script` whatever it is asked to run."""
    (folder / "server.py").write_text(script, encoding="utf-8")
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{folder}/server.py" "$@"\n', encoding="utf-8")
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    return str(python)


def worker_of(log: Path) -> int:
    return int(next(line for line in log.read_text().splitlines() if line.startswith("worker")).split()[1])


async def ask(engine: Any) -> Answer:
    answer = Answer(Prompt("chat", "chat/00", "Why?"), start_s=asyncio.get_running_loop().time())
    await engine.send(answer, Sampling())
    return answer


def test_a_server_serves_and_leaves_no_process_behind(tmp_path: Path) -> None:
    before = set(psutil.Process().children(recursive=True))  # what other tests of this process left
    log = tmp_path / "run" / "server.log"
    opening = vllm.opening(
        a_lab(), an_arm(), log, python=stand_in(tmp_path, SERVING.format(dies_at=NEVER)), device="here"
    )

    async def main() -> tuple[Answer, str]:
        async with opening.engine() as engine:
            assert is_alive(worker_of(log))
            return await ask(engine), engine.identity.source

    answer, source = asyncio.run(main())
    assert list(answer.event_tokens) == [1, 1, 1]
    assert source == "measured (mock, here)"
    assert not is_alive(worker_of(log))
    assert set(psutil.Process().children(recursive=True)) <= before
    assert opening.command == vllm.command(a_lab(), an_arm(), 8000)


def test_the_server_is_stopped_where_the_run_is_cancelled(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    opening = vllm.opening(a_lab(), an_arm(), log, python=stand_in(tmp_path, SERVING.format(dies_at=NEVER)), device="x")

    async def main() -> None:
        async with opening.engine():
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert not is_alive(worker_of(log))


def test_a_server_that_dies_is_named_with_its_status_and_its_log(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("MemoryError: of an older start\n")
    opening = vllm.opening(a_lab(), an_arm(), log, python=stand_in(tmp_path, SERVING.format(dies_at=2)), device="here")

    async def main() -> None:
        async with opening.engine() as engine:
            for _ in range(10):
                await ask(engine)

    with pytest.raises(EngineFailure) as failure:
        asyncio.run(main())
    assert failure.value.kind == "died mid-run"
    assert failure.value.reason == "the server ended with status 7: RuntimeError: worker 0 fell over"
    assert "starting on" in failure.value.log_tail
    assert "older start" not in failure.value.log_tail
    assert not is_alive(worker_of(log))


def test_g5_a_server_that_dies_as_it_is_asked_whether_it_serves_is_no_bad_configuration(tmp_path: Path) -> None:
    python = stand_in(tmp_path, SERVING.format(dies_at=0))
    opening = vllm.opening(a_lab(), an_arm(), tmp_path / "log", python=python, device="here")

    async def main() -> None:
        async with opening.engine():
            raise AssertionError("opened")

    with pytest.raises(EngineFailure) as failure:
        asyncio.run(main())
    assert failure.value.kind == "will not start"
    assert failure.value.reason == "the server ended with status 7: RuntimeError: worker 0 fell over"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent was killed")
def test_g4_a_guard_that_is_killed_is_named_and_nothing_of_the_server_is_left(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    python = stand_in(tmp_path, SERVING.format(dies_at=NEVER))
    opening = vllm.opening(a_lab(), an_arm(), log, python=python, device="here")

    async def main() -> None:
        async with opening.engine() as engine:
            (guard,) = (
                process for process in psutil.Process().children() if "speclab.engines.guard" in process.cmdline()
            )
            guard.kill()
            while True:
                await ask(engine)

    with pytest.raises(EngineFailure) as failure:
        asyncio.run(main())
    assert failure.value.kind == "died mid-run"
    assert failure.value.reason.startswith("the process that watches over the server was killed (signal 9")
    assert not is_alive(worker_of(log)), "it lost its parent, and is found all the same"


def test_g9_a_start_speaks_until_the_server_answers(tmp_path: Path) -> None:
    told: list[tuple[float, str | None]] = []
    python = stand_in(tmp_path, SERVING.format(dies_at=NEVER))
    opening = vllm.opening(
        a_lab(), an_arm(), tmp_path / "log", python=python, device="here", starting=lambda *now: told.append(now)
    )

    async def main() -> None:
        async with opening.engine():
            assert told[-1][1] is None

    asyncio.run(main())
    assert [line for _, line in told if line is None] == [None]
    assert [elapsed_s for elapsed_s, _ in told] == sorted(elapsed_s for elapsed_s, _ in told)
    assert told[0][1] == ""
    assert any(line is not None and line.startswith("worker") for _, line in told), "the server's own words"


def test_the_log_of_a_server_holds_no_secret_that_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_planted-for-this-test")
    monkeypatch.setenv("HTTPS_PROXY", "http://me:planted-password@proxy:3128")
    script = 'import os; raise RuntimeError(f\'refused: {os.environ["HF_TOKEN"]} at {os.environ["HTTPS_PROXY"]}\')'
    log = tmp_path / "log"
    opening = vllm.opening(a_lab(), an_arm(), log, python=stand_in(tmp_path, script), device="here")

    async def main() -> None:
        async with opening.engine():
            raise AssertionError("opened")

    with pytest.raises(EngineFailure) as failure:
        asyncio.run(main())
    assert failure.value.reason.endswith("RuntimeError: refused: [redacted] at http://proxy:3128")
    assert "planted" not in failure.value.log_tail + log.read_text()


@pytest.mark.parametrize(
    ("script", "kind", "said"),
    [
        (
            "import sys; print('api_server.py: error: unrecognized arguments: --no-such-flag'); sys.exit(2)",
            "bad configuration",
            "status 2: error: unrecognized arguments: --no-such-flag",
        ),
        ("import os; os.kill(os.getpid(), 9)", "will not start", "status 137: killed by a signal from outside"),
        (
            "raise MemoryError('cannot allocate 40 GiB')",
            "out of memory",
            "status 1: MemoryError: cannot allocate 40 GiB",
        ),
        ("raise SystemExit(3)", "will not start", "status 3: its log names no error"),
    ],
)
def test_a_server_that_does_not_come_up_is_classed(tmp_path: Path, script: str, kind: str, said: str) -> None:
    opening = vllm.opening(a_lab(), an_arm(), tmp_path / "log", python=stand_in(tmp_path, script), device="here")

    async def main() -> None:
        async with opening.engine():
            raise AssertionError("opened")

    with pytest.raises(EngineFailure) as failure:
        asyncio.run(main())
    assert failure.value.kind == kind
    assert said in failure.value.reason


def test_a_server_that_never_answers_is_given_up_and_stopped(tmp_path: Path) -> None:
    silent = "import time; time.sleep(1000)"
    before, log = set(psutil.Process().children(recursive=True)), tmp_path / "log"
    opening = vllm.opening(a_lab(), an_arm(), log, python=stand_in(tmp_path, silent), device="here", ready_within_s=2.0)

    async def main() -> None:
        async with opening.engine():
            raise AssertionError("opened")

    with pytest.raises(EngineFailure, match=r"will not start: no completion answered within 2 s \(no server answers"):
        asyncio.run(main())
    assert set(psutil.Process().children(recursive=True)) <= before
