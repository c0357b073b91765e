"""Flags of `vllm serve` in every form in which vLLM takes them, and what its own parser makes of a command line.

A lab may write a flag as anybody's command line does. `of` brings all forms to one, which the launcher, the doctor and
the records share: the long name with dashes, numbers as numbers, a configuration as a mapping. `parsed` asks the
installed vLLM in a process of its own, since importing it takes seconds and changes the process that does it; no model
is loaded.
"""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from speclab import paths
from speclab.config import Frozen
from speclab.errors import UserError
from speclab.lab import Arm, Lab, ServerFlag

Flags = dict[str, ServerFlag]

OTHER_NAMES = {
    "ac": "attention-config",
    "asc": "api-server-count",
    "cc": "compilation-config",
    "dc": "diffusion-config",
    "dcp": "decode-context-parallel-size",
    "device-memory-utilization": "gpu-memory-utilization",
    "dp": "data-parallel-size",
    "dpa": "data-parallel-address",
    "dpb": "data-parallel-backend",
    "dpe": "data-parallel-external-lb",
    "dph": "data-parallel-hybrid-lb",
    "dpl": "data-parallel-size-local",
    "dpm": "data-parallel-multi-port-external-lb",
    "dpn": "data-parallel-rank",
    "dpp": "data-parallel-rpc-port",
    "dpr": "data-parallel-start-rank",
    "ep": "enable-expert-parallel",
    "n": "nnodes",
    "O": "optimization-level",
    "pcp": "prefill-context-parallel-size",
    "pp": "pipeline-parallel-size",
    "q": "quantization",
    "r": "node-rank",
    "sc": "speculative-config",
    "tp": "tensor-parallel-size",
}
"""vLLM's short and second names of its flags (0.32); a live test holds them to the installed parser."""

READ_AS_SIZES = (
    "kv-cache-memory-bytes",
    "max-model-len",
    "max-num-batched-tokens",
    "max-num-queued-tokens",
    "max-num-scheduled-tokens",
    "safetensors-prefetch-block-size",
)
"""Flags that take ``8k`` (8,000) and ``8K`` (8,192)."""

UNITS = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def of(lab: Lab, arm: Arm) -> Flags:
    """Return the flags of one arm's server: the lab's, overridden by the arm's, each in its one form.

    A dotted key of the arm (``compilation-config.cudagraph_mode``) changes that entry of the lab's mapping; a whole
    mapping replaces the lab's.

    Raises
    ------
    UserError
        A flag is given twice in one file, or no value can be read from it.
    """
    folder = paths.labs() / lab.name
    shared = normalised(lab.server, file=folder / "lab.yml")
    return normalised(arm.server, shared, file=folder / f"{arm.arm}.yml")


def normalised(given: Mapping[str, ServerFlag], over: Mapping[str, ServerFlag] | None = None, *,
               file: Path | None = None) -> Flags:  # fmt: skip
    """Return flags by their long names with dashes, in the order given.

    Taken are dashes or underscores, leading dashes, short names (``tp``), ``O3``, ``name=value`` as the key,
    ``no-name``, dotted keys (``compilation-config.mode``; with a ``+`` the value joins the list there), numbers as
    text, sizes (``8k``) and JSON text.

    Parameters
    ----------
    given : mapping of str to ServerFlag
        As in ``server`` of a lab or an arm.
    over : mapping of str to ServerFlag, optional
        Normalised flags that these override.
    file : Path, optional
        Where they stand, for messages.

    Raises
    ------
    UserError
        A flag is given twice, or is dotted into something that is no mapping.
    """
    flags: Flags = copy.deepcopy(dict(over or {}))
    written: dict[str, str] = {}
    dotted: list[tuple[str, list[str], ServerFlag, str]] = []
    for key, value in given.items():
        name, path, value = _read(key, value)
        place = ".".join([name, *path])
        if place in written:
            raise UserError(f"{name} is given twice, as {written[place]!r} and as {key!r}", "keep one of them",
                            file=file, key=f"server.{key}")  # fmt: skip
        written[place] = key
        if path:
            dotted.append((name, path, value, key))
        else:
            flags[name] = value
    for name, path, value, key in dotted:  # after the whole ones, which they change
        inner = flags.setdefault(name, {})
        for part in path[:-1]:
            inner = inner.setdefault(part, {}) if isinstance(inner, dict) else inner
        if not isinstance(inner, dict):
            raise UserError(f"{name} is {flags[name]!r}, which has no {'.'.join(path)}", "give a mapping",
                            file=file, key=f"server.{key}")  # fmt: skip
        last = path[-1]
        inner[last.removesuffix("+")] = [*inner.get(last[:-1], []), *_list(value)] if last.endswith("+") else value
    return flags


def words(flags: Mapping[str, ServerFlag]) -> list[str]:
    """Return normalised flags as the words of a command line: ``true`` is ``--flag``, ``false`` is ``--no-flag``."""
    return [word for name, value in flags.items() for word in _words(name, value)]


def _words(name: str, value: ServerFlag) -> list[str]:
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    if isinstance(value, list):
        return [f"--{name}", *map(str, value)]  # vLLM's list flags take words (argparse's nargs), and refuse JSON
    if isinstance(value, dict):
        return [f"--{name}", json.dumps(value)]
    return [f"--{name}", str(value)]


def _read(key: str, value: ServerFlag) -> tuple[str, list[str], ServerFlag]:
    """Return a flag's long name, the path into its mapping (empty for all of it) and its value."""
    bare = key.lstrip("-")
    if "=" in bare:  # a key such as ``max-num-seqs=256``, whose own value says only that it is given
        bare, _, value = bare.partition("=")
    if at := re.fullmatch(r"O(\d)", bare):
        bare, value = "O", int(at.group(1))
    name, *path = bare.split(".")
    name = name.replace("_", "-")
    if isinstance(value, bool) and name.startswith("no-"):
        name, value = name.removeprefix("no-"), not value
    name = OTHER_NAMES.get(name, name)
    return name, path, _value(name, value, inside=bool(path))


def _value(name: str, value: ServerFlag, *, inside: bool) -> ServerFlag:
    """Return a value that was written as text as what vLLM makes of it; one that it would keep as text stays text."""
    if not isinstance(value, str):
        return [value] if name == "cudagraph-capture-sizes" and type(value) is int else value
    text = value.strip()
    if inside or text.startswith("{"):
        try:
            return json.loads(_expanded(text))  # type: ignore[no-any-return]
        except ValueError:
            return value
    if name in READ_AS_SIZES and (size := _size(text)) is not None:
        return size
    for read in (int, float):
        try:
            number = read(text)
        except ValueError:
            continue
        if str(number) == text:  # never 007
            return number
    return value


def _expanded(text: str) -> str:
    """Return JSON with sizes such as 8k written out, outside of its strings."""
    parts = re.split(r'("(?:[^"\\]|\\.)*")', text)
    outside = [re.sub(r"\b\d+(?:\.\d+)?[kKmMgGtT]\b", lambda size: str(_size(size.group())), part)
               for part in parts[::2]]  # fmt: skip
    parts[::2] = outside
    return "".join(parts)


def _size(text: str) -> int | None:
    at = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgGtT])", text)
    return None if at is None else int(float(at.group(1)) * UNITS[at.group(2)])


def _list(value: ServerFlag) -> list[Any]:
    return list(value) if isinstance(value, list) else str(value).split(",")


ASK_WITHIN_S = 180.0

_ASK = """
import contextlib, io, json, sys
try:
    from vllm.entrypoints.common.cli_args import make_arg_parser
except ModuleNotFoundError:  # up to 0.32
    try:
        from vllm.entrypoints.launchers.cli_args import make_arg_parser
    except ModuleNotFoundError:  # before its launchers had a folder
        from vllm.entrypoints.openai.cli_args import make_arg_parser
try:
    from vllm.utils.argparse_utils import FlexibleArgumentParser
except ImportError:
    from vllm.utils import FlexibleArgumentParser
plain = (bool, int, float, str, list, dict, type(None))
answers = []
for words in json.load(sys.stdin):
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            parsed = vars(make_arg_parser(FlexibleArgumentParser()).parse_args(words))
        values = {name: value if isinstance(value, plain) else str(value) for name, value in parsed.items()}
        answers.append({"error": None, "values": values})
    except SystemExit:
        answers.append({"error": said.getvalue().strip().split("error: ")[-1], "values": {}})
print("ANSWERS" + json.dumps(answers, default=str))
"""


class Parsed(Frozen):
    """One command line as vLLM reads it."""

    error: str | None
    """What the parser says against it; None where it takes it."""
    values: dict[str, Any]
    """Plain values by the parser's own names (``max_num_seqs``)."""


def parsed(commands: Sequence[list[str]], python: str = sys.executable) -> list[Parsed]:
    """Return what vLLM's parser makes of command lines.

    Parameters
    ----------
    commands : sequence of list of str
        As `speclab.engines.vllm.command` gives them: interpreter, ``-m``, module, flags.
    python : str
        Interpreter of the environment that holds vLLM.

    Raises
    ------
    UserError
        vLLM cannot be imported there, or takes longer than `ASK_WITHIN_S` to.
    """
    asked = json.dumps([command[3:] for command in commands])
    try:
        done = subprocess.run([python, "-c", _ASK], input=asked, capture_output=True, text=True, check=True,
                              timeout=ASK_WITHIN_S)  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UserError(f"vLLM's parser gave no answer within {ASK_WITHIN_S:g} s", "try again when the machine is idle",
                        key="engine") from None  # fmt: skip
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["no output"])[-1]
        raise UserError(f"vLLM cannot be asked ({last})", "install it again in this environment",
                        key="engine") from None  # fmt: skip
    answers = json.loads(done.stdout.rsplit("ANSWERS", 1)[-1])
    return [Parsed.model_validate(answer) for answer in answers]
