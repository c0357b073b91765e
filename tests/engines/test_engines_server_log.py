"""Logs as vLLM writes them, shortened: from its own sources and from reports of its users."""

from __future__ import annotations

from pathlib import Path

import pytest

from speclab.engines import server_log
from speclab.engines.server_log import failure, tail, text

NO_ROOM = """\
(EngineCore pid=7) ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV \
cache is needed, which is larger than the available KV cache memory (2.00 GiB).
(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""
NO_BLOCKS = """\
(EngineCore pid=7) ERROR 01-16 17:16:49 [core.py:1510] EngineCore failed to start.
(EngineCore pid=7) ERROR 01-16 17:16:49 [core.py:1510] Traceback (most recent call last):
(EngineCore pid=7) ERROR 01-16 17:16:49 [core.py:1510]     raise ValueError(
(EngineCore pid=7) ERROR 01-16 17:16:49 [core.py:1510] ValueError: No available memory for the cache blocks. Try \
increasing `gpu_memory_utilization` when initializing the engine (this flag also controls CPU memory reservation).
(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""
OTHERS_ON_THE_GPU = """\
(EngineCore pid=7) ValueError: Free memory on device cuda:0 (10.3/79.2 GiB) on startup is less than desired GPU \
memory utilization (0.9, 71.3 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.
"""
REFUSED = """\
usage: api_server.py [-h] [--model MODEL]
api_server.py: error: unrecognized arguments: --no-such-flag
"""
CUDA = """\
(EngineCore pid=7) ERROR 01-16 17:16:49 [core.py:1512] EngineCore encountered a fatal error.
(EngineCore pid=7) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity \
of 79.10 GiB of which 1.03 GiB is free.
(APIServer pid=1) vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above)
"""
CORE_DIED = """\
(EngineCore pid=7) RuntimeError: shape '[8]' is invalid
(APIServer pid=1) vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.
"""
CORE_KILLED = """\
(APIServer pid=1) INFO:     127.0.0.1:52 - "POST /v1/chat/completions HTTP/1.1" 200 OK
(APIServer pid=1) WARNING 01-16 17:16:49 [core_client.py:817] [shutdown] MPClient: engine core exited unexpectedly; \
starting cleanup
(APIServer pid=1) ERROR 01-16 17:16:49 [async_llm.py:906] AsyncLLM output_handler failed.
(APIServer pid=1) ERROR 01-16 17:16:49 [async_llm.py:906] Traceback (most recent call last):
(APIServer pid=1) ERROR 01-16 17:16:49 [async_llm.py:906] vllm.v1.engine.exceptions.EngineDeadError: EngineCore \
encountered an issue. See stack trace (above) for the root cause.
(APIServer pid=1) INFO:     Shutting down
(APIServer pid=1) INFO:     Application shutdown complete.
"""
CORE_KILLED_AFTER_WARNINGS = """\
(APIServer pid=17376) WARNING 12-01 14:15:21 [system_utils.py:255] Found ulimit of 20000 and failed to automatically \
increase with error current limit exceeds maximum limit. This can cause fd limit errors like `OSError: [Errno 24] Too \
many open files`. Consider increasing with ulimit -n
(Worker pid=18795) WARNING 12-01 14:19:33 [utils.py:597] Failed to create oneDNN linear, fallback to torch linear. \
Exception: could not create a primitive descriptor for the matmul primitive.
(APIServer pid=17376)   File "site-packages/vllm/v1/engine/utils.py", line 1431, in wait_for_engine_startup
(APIServer pid=17376)     raise RuntimeError(
(APIServer pid=17376) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""
"""Of vLLM 0.32 on a CPU, whose engine was killed as it started."""
CORE_KILLED_BEFORE = """\
ERROR 10-23 18:21:12 [core_client.py:597] Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.
"""
CORE_KILLED_AT_ITS_START = """\
(EngineCore pid=7) INFO 01-16 17:16:49 [gpu_model_runner.py:2024] Model loading took 6.3 GiB and 1.2 seconds
(APIServer pid=1) Traceback (most recent call last):
(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): \
{'EngineCore_DP0': -9}
"""
GATED = """\
(APIServer pid=1) huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1-69)
(APIServer pid=1)
(APIServer pid=1) The above exception was the direct cause of the following exception:
(APIServer pid=1)
(APIServer pid=1) OSError: You are trying to access a gated repo.
(APIServer pid=1) Make sure to have access to it at https://huggingface.co/meta-llama/Llama-3.2-1B-Instruct.
(APIServer pid=1) 401 Client Error. (Request ID: Root=1-69)
"""
NO_SUCH_MODEL = """\
OSError: org/modle is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'
If this is a private repository, make sure to pass a token having permission to this repo
"""
NO_CONFIG = "OSError: models/head does not appear to have a file named config.json. Checkout 'https://huggingface.co/x'"
TOO_LONG = """\
(APIServer pid=1) pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig
(APIServer pid=1)   Value error, User-specified max_model_len (131072) is greater than the derived max_model_len \
(max_position_embeddings=8192 or model_max_length=None in model's config.json). This may lead to incorrect outputs
(APIServer pid=1)     For further information visit https://errors.pydantic.dev/2.11/v/value_error
"""
PORT_TAKEN = """\
    sock.bind(addr)
OSError: [Errno 98] Address already in use
"""
PORT_TAKEN_LATER = """\
ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 8000): address already in use
"""
DISK_FULL = """\
(APIServer pid=1) RuntimeError: Data processing error: CAS service error : IO Error: No space left on device (os error \
28)
"""
OFFLINE = """\
OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.
"""
NO_GPU = "RuntimeError: Failed to infer device type, please set the environment variable `VLLM_LOGGING_LEVEL=DEBUG`"
OTHER_BEFORE = """\
ERROR 01-16 17:16:49 [config.py:120] Error retrieving file list: 401 Client Error: Unauthorized, retrying 1 of 2
huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1-69)
INFO 01-16 17:16:52 the files in the cache are taken
ValueError: head_dim 63 is not supported
"""
SILENT = "the engine's process ended without a word (killed? out of memory?)"


@pytest.mark.parametrize(
    ("status", "log", "started", "kind", "said"),
    [
        (1, NO_ROOM, False, "out of memory", "ValueError: To serve at least one request"),
        (1, NO_BLOCKS, False, "out of memory", "ValueError: No available memory for the cache blocks."),
        (1, OTHERS_ON_THE_GPU, False, "out of memory", "end what else holds the memory"),
        (2, REFUSED, False, "bad configuration", "error: unrecognized arguments: --no-such-flag"),
        (1, CUDA, True, "out of memory", "torch.OutOfMemoryError: CUDA out of memory."),
        (0, CORE_DIED, True, "died mid-run", "RuntimeError: shape '[8]' is invalid"),
        (1, GATED, False, "bad configuration", "You are trying to access a gated repo.; ask for access"),
        (1, NO_SUCH_MODEL, False, "bad configuration", "mend the model's name"),
        (1, NO_CONFIG, False, "bad configuration", "file named config.json"),
        (1, TOO_LONG, False, "bad configuration", "max_model_len (131072) is greater than the derived"),
        (1, PORT_TAKEN, False, "will not start", "OSError: [Errno 98] Address already in use; something took the port"),
        (1, PORT_TAKEN_LATER, False, "will not start", "something took the port"),
        (1, DISK_FULL, False, "will not start", "No space left on device (os error 28); free the disk"),
        (1, DISK_FULL, True, "died mid-run", "free the disk"),
        (1, OFFLINE, False, "will not start", "unset HF_HUB_OFFLINE"),
        (1, NO_GPU, False, "will not start", "see whether nvidia-smi lists the GPU"),
        (1, OTHER_BEFORE, False, "bad configuration", "status 1: ValueError: head_dim 63 is not supported"),
        (137, OTHER_BEFORE, True, "died mid-run", "killed by a signal"),
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


@pytest.mark.parametrize(
    ("status", "log", "started", "kind"),
    [
        (0, CORE_KILLED, True, "died mid-run"),
        (0, CORE_KILLED_BEFORE, True, "died mid-run"),
        (1, CORE_KILLED_AT_ITS_START, False, "will not start"),
        (1, CORE_KILLED_AFTER_WARNINGS, False, "will not start"),
    ],
)
def test_g5_an_engine_that_was_killed_ended_without_a_word(status: int, log: str, started: bool, kind: str) -> None:
    found = failure(status, log, started=started)
    assert (found.kind, found.reason) == (kind, f"the server ended with status {status}: {SILENT}")


def test_g5_the_cause_is_found_above_the_lines_that_are_kept() -> None:
    requests = '(APIServer pid=1) INFO:     127.0.0.1:52 - "POST /v1/chat/completions HTTP/1.1" 500\n'
    found = failure(0, CORE_DIED + server_log.TAIL_LINES * requests, started=True)
    assert "RuntimeError: shape '[8]' is invalid" in found.reason
    assert "shape" not in found.log_tail


@pytest.mark.parametrize(("started", "kind"), [(True, "died mid-run"), (False, "will not start")])
def test_g4_a_guard_that_was_killed_is_the_reason(started: bool, kind: str) -> None:
    found = failure(-9, "INFO all is well", started=started)
    assert found.kind == kind
    assert found.reason.startswith("the process that watches over the server was killed (signal 9")


def test_the_text_is_the_end_of_the_newest_start(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("old\n" + "".join(f"line {number}\n" for number in range(100)), encoding="utf-8")
    assert tail(text(log, start=4), lines=2) == "line 98\nline 99"
    assert text(log, start=4).startswith("line 0\n")
    assert text(tmp_path / "absent") == ""
    assert server_log.last_line("one\ntwo\n \n(APIServer pid=1) \n") == "two"
    assert server_log.last_line(CORE_KILLED_AT_ITS_START.splitlines()[0]).startswith("Model loading took 6.3 GiB")
    assert server_log.last_line("Loading shards:  50%\rLoading shards: 100%") == "Loading shards: 100%"
    assert server_log.last_line("") == ""
    log.write_bytes(b"x" * (server_log.READ_BYTES + 7))
    assert len(text(log)) == server_log.READ_BYTES
