"""A mock that poses as vLLM: it takes vLLM's command line, serves no model, and takes as long as its profile says.

``python -m speclab.engines.mock_vllm PROFILE serve MODEL --port PORT ...`` understands ``--model`` (or the model behind
``serve``), ``--port`` and ``--speculative-config``, and ignores vLLM's other flags. Whoever starts it in vLLM's place
says so: nothing that it gives is a measurement of vLLM.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from speclab.config import Frozen
from speclab.engines.mock import MockServer, precise_loop, serve
from speclab.engines.mock_script import Script

PLAIN = "baseline"


class Profile(Frozen):
    """What the server poses as."""

    version: str
    """The version of vLLM that ``/version`` gives."""
    steps: dict[str, Script]
    """How it serves, by speculative method, k behind it where two differ (``ngram-8``); `PLAIN` without one."""

    def of(self, command: Sequence[str]) -> Script:
        """Return how a server with this command line serves."""
        config = json.loads(_after(command, "--speculative-config") or "null")
        if config is None:
            return self.steps[PLAIN]
        method = config["method"]
        return self.steps.get(f"{method}-{config['num_speculative_tokens']}") or self.steps[method]

    def server(self, command: Sequence[str]) -> MockServer:
        """Return the server that a command line asks for."""
        model = _after(command, "--model") or _after(command, "serve") or "mock"
        script = self.of(command).model_copy(update={"model": model, "version": self.version})
        return MockServer(script, int(_after(command, "--port") or 8000))


def main(arguments: Sequence[str]) -> None:
    """Serve as a profile's file and a command line of vLLM say, until the process is stopped."""
    profile = Profile.model_validate_json(Path(arguments[0]).read_bytes())
    with asyncio.Runner(loop_factory=precise_loop) as runner:
        runner.run(serve(profile.server(arguments[1:])))


def _after(command: Sequence[str], word: str) -> str | None:
    return command[command.index(word) + 1] if word in command else None


if __name__ == "__main__":
    main(sys.argv[1:])
