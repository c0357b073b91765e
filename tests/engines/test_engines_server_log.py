from __future__ import annotations

from pathlib import Path

import pytest

from speclab.engines.server_log import failure, tail

# shortened from what vLLM prints
NO_ROOM = """\
(EngineCore pid=7) ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV \
cache is needed, which is larger than the available KV cache memory (2.00 GiB).
(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""
REFUSED = """\
usage: api_server.py [-h] [--model MODEL]
api_server.py: error: unrecognized arguments: --no-such-flag
"""
CUDA = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
CORE_DIED = """\
(EngineCore pid=7) RuntimeError: shape '[8]' is invalid
(APIServer pid=1) vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.
"""


@pytest.mark.parametrize(
    ("status", "log", "started", "kind", "said"),
    [
        (1, NO_ROOM, False, "out of memory", "ValueError: To serve at least one request"),
        (2, REFUSED, False, "bad configuration", "error: unrecognized arguments: --no-such-flag"),
        (1, CUDA, True, "out of memory", "torch.OutOfMemoryError: CUDA out of memory."),
        (0, CORE_DIED, True, "died mid-run", "RuntimeError: shape '[8]' is invalid"),
        (1, "ValueError: bad head", False, "bad configuration", "ValueError: bad head"),
        (1, "ValueError: bad head", True, "died mid-run", "ValueError: bad head"),
        (1, "speclab.errors.UserError: made for 0.32", False, "bad configuration", "UserError: made for 0.32"),
        (137, "INFO all is well", True, "died mid-run", "killed by a signal"),
        (5, "", False, "will not start", "its log names no error"),
    ],
)
def test_the_class_and_the_cause(status: int, log: str, started: bool, kind: str, said: str) -> None:
    found = failure(status, log, started=started)
    assert found.kind == kind
    assert said in found.reason
    assert found.reason.startswith(f"the server ended with status {status}: ")
    assert "\n" not in found.reason


def test_the_tail_is_the_last_lines_of_the_newest_start(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("old\n" + "".join(f"line {number}\n" for number in range(100)), encoding="utf-8")
    assert tail(log, start=4, lines=2) == "line 98\nline 99"
    assert tail(log, start=4, lines=1000).startswith("line 0\n")
    assert tail(tmp_path / "absent") == ""
