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
from speclab.engines.mock import JSON
from speclab.engines.mock_steps import SteppingServer, Steps

PLAIN = "baseline"


class Profile(Frozen):
    """What the server poses as."""

    version: str
    """The version of vLLM that ``/version`` gives."""
    steps: dict[str, Steps]
    """How it serves, by speculative method, k behind it where two differ (``ngram-8``); `PLAIN` without one."""

    def of(self, command: Sequence[str]) -> Steps:
        """Return how a server with this command line serves."""
        config = json.loads(_after(command, "--speculative-config") or "null")
        if config is None:
            return self.steps[PLAIN]
        method = config["method"]
        return self.steps.get(f"{method}-{config['num_speculative_tokens']}") or self.steps[method]


class MockVllm(SteppingServer):
    """A stepping mock that answers ``/health`` and ``/version`` and shows vLLM's counters from the start."""

    def __init__(self, profile: Profile, command: Sequence[str]):
        model = _after(command, "--model") or _after(command, "serve")
        super().__init__(profile.of(command), model or "mock", int(_after(command, "--port") or 8000))
        self._version = profile.version

    def _page(self, path: str) -> tuple[int, str, str]:
        if path == "/health":
            return 200, "text/plain", ""
        if path == "/version":
            return 200, JSON, json.dumps({"version": self._version})
        return super()._page(path)

    def _metrics(self) -> str:
        cache = ("prefix_cache_queries_total", "prefix_cache_hits_total")
        names = ("prompt_tokens_total", "num_preemptions_total", *cache)
        labels = f'engine="0",model_name="{self.script.model}"'
        more = {"num_requests_waiting": 0, **{name: self._counted[name] for name in names}}
        return super()._metrics() + "".join(f"vllm:{name}{{{labels}}} {float(more[name])}\n" for name in more)


def main(arguments: Sequence[str]) -> None:
    """Serve as a profile's file and a command line of vLLM say, until the process is stopped."""
    profile = Profile.model_validate_json(Path(arguments[0]).read_bytes())
    asyncio.run(_serve(MockVllm(profile, arguments[1:])))


async def _serve(server: MockVllm) -> None:
    async with server:
        print(f"a mock, no vLLM: serving at {server.url}", flush=True)
        await asyncio.Event().wait()


def _after(command: Sequence[str], word: str) -> str | None:
    return command[command.index(word) + 1] if word in command else None


if __name__ == "__main__":
    main(sys.argv[1:])
