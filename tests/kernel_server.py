"""Fork a Jupyter kernel for each line of the standard input, from a process that holds what notebooks import.

Each line names a connection file and a folder; the answer is the kernel's process. A kernel holds modules just
imported, and nothing that another one left. All end when the standard input does.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from importlib import import_module

from ipykernel.kernelapp import IPKernelApp

IMPORTS = ("speclab.figures", "speclab.results", "speclab.replications.ask", "speclab.run", "speclab.book.table")
"""With what these import, most of the time that the start of a notebook takes."""


def main() -> None:
    for name in IMPORTS:
        import_module(name)
    server = os.getpid()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # a kernel that ended leaves nothing behind
    for line in sys.stdin:
        file, folder = json.loads(line)
        kernel = os.fork()
        if kernel == 0:
            become_a_kernel(file, folder, server)
        print(kernel, flush=True)


def become_a_kernel(file: str, folder: str, server: int) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir(folder)
    for stream in (0, 1):
        os.dup2(os.open(os.devnull, os.O_RDWR), stream)
    os.environ["JPY_PARENT_PID"] = str(server)  # it ends itself when that process is gone
    IPKernelApp.launch_instance(argv=["-f", file])
    os._exit(0)


if __name__ == "__main__":
    main()
