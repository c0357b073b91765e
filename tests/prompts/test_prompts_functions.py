from __future__ import annotations

import ast
import doctest

from speclab.prompts import functions, human_eval


def test_completion_is_the_stub_and_nothing_else():
    assert [p.text for p in functions.completion()] == [f.stub for f in human_eval.functions()]


def test_revision_is_one_instruction_above_a_whole_function():
    for prompt, function in zip(functions.revision(), human_eval.functions(), strict=True):
        instruction, code = prompt.text.split("\n\n", maxsplit=1)
        assert prompt.id == function.id
        assert instruction == functions.INSTRUCTION
        assert code == (function.stub + function.body).strip("\n")
        assert function.name in {node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)}


def test_own_functions_are_cut_after_the_docstring():
    clamp = functions.completion_warm_up()[0]
    assert clamp.id == "warm-up/clamp"
    assert clamp.text == (
        "def clamp(value, lowest, highest):\n"
        '    """Return value, moved up to lowest or down to highest if it lies outside the two.\n'
        "\n"
        "    >>> clamp(12, 0, 10)\n"
        "    10\n"
        '    """\n'
    )
    revised = functions.revision_warm_up()[0].text
    assert revised == f"{functions.INSTRUCTION}\n\n{clamp.text}    return max(lowest, min(value, highest))"


def test_own_functions_have_no_hints_and_do_what_they_say():
    for prompt in functions.revision_warm_up():
        code = prompt.text.removeprefix(functions.INSTRUCTION)
        (definition,) = ast.parse(code).body
        assert isinstance(definition, ast.FunctionDef)
        assert definition.returns is None
        assert all(argument.annotation is None for argument in definition.args.args)
        names: dict[str, object] = {}
        exec(compile(code, prompt.id, "exec"), names)
        examples = doctest.DocTestFinder().find(names[definition.name], definition.name, globs=names)
        result = doctest.DocTestRunner().run(examples[0])
        assert (result.attempted, result.failed) == (1, 0)
