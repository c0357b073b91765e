"""A pytest plugin: nbval's kernels start at once, and each is as fresh as one of its own.

They are forked from a process that has imported what the notebooks import (``kernel_server.py``). By hand, without
this plugin (``pytest --nbval book/analysis/lab09/method.ipynb``), nbval starts plain kernels, and finds the same.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from itertools import count
from pathlib import Path

import nbval.plugin
import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.connect import write_connection_file
from nbval.kernel import RunningKernel

from speclab.book.deterministic import SAME_EVERYWHERE

SERVER = Path(__file__).with_name("kernel_server.py")


class ForkingServer:
    """The process that forks; it starts with the first kernel that is asked for."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.folder = tempfile.TemporaryDirectory(prefix="kernels-")
        self.numbers = count()

    def kernel(self, folder: str) -> tuple[int, str]:
        """Return the process of a new kernel in a folder, and its connection file."""
        if self.process is None:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            environment = os.environ | SAME_EVERYWHERE
            self.process = subprocess.Popen([sys.executable, "-P", SERVER], text=True, env=environment, **pipes)
        name = f"{self.folder.name}/{next(self.numbers)}"
        file, _ = write_connection_file(f"{name}.json", transport="ipc", ip=name)
        print(json.dumps([file, folder]), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"no kernel came: run {SERVER} by hand to see why")
        return int(answer), file

    def stop(self) -> None:
        if self.process is not None:
            self.process.communicate()
        self.folder.cleanup()


class ForkedKernel(RunningKernel):
    """nbval's kernel, forked."""

    server: ForkingServer

    def __init__(self, kernel_name: str, cwd: str, startup_timeout: float = 60) -> None:
        assert kernel_name == "python3"
        self.process, file = self.server.kernel(cwd)
        self.kc = BlockingKernelClient(connection_file=file)
        self.kc.load_connection_file()
        self.kc.start_channels()
        self.await_reply(self.kc.kernel_info(), timeout=startup_timeout)  # the next line would wait for 10 s
        self._ensure_iopub_up()

    def is_alive(self) -> bool:
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return False
        return True

    def interrupt(self) -> None:
        os.kill(self.process, signal.SIGINT)

    def stop(self) -> None:
        self.kc.stop_channels()
        os.kill(self.process, signal.SIGKILL)


def pytest_configure() -> None:
    if hasattr(os, "fork"):
        ForkedKernel.server = ForkingServer()
        nbval.plugin.RunningKernel = ForkedKernel


def pytest_itemcollected(item: pytest.Item) -> None:
    if isinstance(item, nbval.plugin.IPyNbCell):
        item.add_marker("book")


def pytest_unconfigure() -> None:
    if hasattr(os, "fork"):
        ForkedKernel.server.stop()
