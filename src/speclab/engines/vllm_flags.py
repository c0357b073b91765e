"""What the installed vLLM's own argument parser makes of a command line; no model is loaded.

The parser is asked in a process of its own: importing vLLM takes seconds and changes the process that does it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from speclab.config import Frozen
from speclab.errors import UserError

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
        values = {name: value for name, value in parsed.items() if isinstance(value, plain)}
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
