"""The completion and the revision workload: functions to write, and functions to add type hints to.

Both are sent as a chat's user message, through the target's own chat template, as the chat workload is. The stub is
sent on its own: an instruct model takes an unfinished function as a request to finish it.
"""

from __future__ import annotations

import ast
from importlib import resources

from speclab.prompts import human_eval
from speclab.prompts.base import Prompt
from speclab.prompts.human_eval import Function

INSTRUCTION = "Add type hints to the following function. Change nothing else, and answer with the whole function."


def completion() -> tuple[Prompt, ...]:
    """Return HumanEval's 164 stubs."""
    return tuple(_completion(function) for function in human_eval.functions())


def completion_warm_up() -> tuple[Prompt, ...]:
    """Return the stubs of 8 functions of this project's own."""
    return tuple(_completion(function) for function in _own_functions())


def revision() -> tuple[Prompt, ...]:
    """Return HumanEval's 164 functions, stub and canonical solution, each below the instruction to add type hints."""
    return tuple(_revision(function) for function in human_eval.functions())


def revision_warm_up() -> tuple[Prompt, ...]:
    """Return 8 functions of this project's own, each below the same instruction."""
    return tuple(_revision(function) for function in _own_functions())


def _completion(function: Function) -> Prompt:
    return Prompt("completion", function.id, function.stub)


def _revision(function: Function) -> Prompt:
    # many stubs open with blank lines, which would stand between the instruction and the function
    code = (function.stub + function.body).strip("\n")
    return Prompt("revision", function.id, f"{INSTRUCTION}\n\n{code}")


def _own_functions() -> tuple[Function, ...]:
    """Functions of the warm-up, cut after their docstrings as HumanEval's are."""
    text = resources.files("speclab.prompts").joinpath("functions_warm_up.txt").read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    return tuple(
        Function(
            id=f"warm-up/{node.name}",
            name=node.name,
            stub="".join(lines[node.lineno - 1 : node.body[0].end_lineno]),
            body="".join(lines[node.body[0].end_lineno or 0 : node.end_lineno]),
        )
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef)
    )
