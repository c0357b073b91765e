"""Writes down which flags, variables, counters, messages and modules a vLLM knows, read from its sources.

Nothing of vLLM is imported, so that neither its packages nor a GPU is needed:

    pip download --no-deps vllm==X.Y.Z && unzip -q 'vllm-*.whl' '*.py' -d DIR
    python tests/engines/vllm_names.py X.Y.Z DIR/vllm

replaces the version's entry in ``vllm_names.json``. `DIR/vllm` may as well be the folder of an installed package.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

FILE = Path(__file__).parent / "vllm_names.json"
ENTRYPOINTS = "entrypoints"
HOLE = "{}"
"""What stands for a value in a message."""


def names(package: Path) -> dict[str, list[str]]:
    """Return what a vLLM knows, by kind, each sorted."""
    arguments = _tree(package / "engine" / "arg_utils.py")
    front = [tree for _, tree in _trees(package / ENTRYPOINTS) if _defines(tree, "make_arg_parser", "FrontendArgs")]
    engine, frontend = _fields(arguments, "EngineArgs", "AsyncEngineArgs"), {}
    for tree in front:
        frontend |= _fields(tree, "BaseFrontendArgs", "FrontendArgs")
    given = {text[2:] for tree in (arguments, *front) for text in _added(tree)} | {_dashed(name) for name in frontend}
    hints = {_dashed(name): hint for name, hint in (engine | frontend).items()}
    speculative = _tree(package / "config" / "speculative.py")
    found = {
        "flags": given,
        "switches": {name for name in given if re.match(r"bool\b", hints.get(name, ""))},
        "lists": {name for name in given if re.match(r"list\b", hints.get(name, ""))},
        "speculative_config": _fields(speculative, "SpeculativeConfig"),
        "methods": _literals(speculative, re.compile(r"SpeculativeMethod|\w+Types")),
        "rejection_sample_methods": _literals(speculative, re.compile("RejectionSampleMethod")),
        "environment": _keys(_tree(package / "envs.py"), "environment_variables"),
        "metrics": {name for file in ("metrics/loggers.py", "spec_decode/metrics.py")
                    for name in _exposed(_tree(package / "v1" / file))},
        "chat_request": _fields_below(package, "ChatCompletionRequest"),
        "stream_options": _fields_below(package, "StreamOptions"),
        "routes": {path for _, tree in _trees(package / ENTRYPOINTS) for path in _routes(tree)},
        "memory_errors": {text for _, tree in _trees(package / "v1") for text in _raised(tree) if _is_of_memory(text)},
        "modules": _modules(package),
    }  # fmt: skip
    return {kind: sorted(values) for kind, values in found.items()}


def dumped(versions: dict[str, dict[str, list[str]]]) -> str:
    """Return versions as JSON whose lists fill lines of 120 columns."""
    entries = []
    for version, kinds in sorted(versions.items()):
        lists = []
        for kind, values in kinds.items():
            joined = [json.dumps(value) for value in values]
            # a message has spaces of its own, at which nothing may be broken
            line = textwrap.fill(", ".join(value.replace(" ", "\0") for value in joined), 112, break_long_words=False,
                                 break_on_hyphens=False).replace("\0", " ")  # fmt: skip
            lists.append(f"    {json.dumps(kind)}: [\n{textwrap.indent(line, ' ' * 6)}\n    ]")
        entries.append(f"  {json.dumps(version)}: {{\n" + ",\n".join(lists) + "\n  }")
    return "{\n" + ",\n".join(entries) + "\n}\n"


def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _trees(folder: Path) -> Iterator[tuple[Path, ast.Module]]:
    return ((file, _tree(file)) for file in sorted(folder.rglob("*.py")))


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _defines(tree: ast.Module, *wanted: str) -> bool:
    found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return set(wanted) <= found


def _fields(tree: ast.Module, *classes: str) -> dict[str, str]:
    """Return the annotated fields of classes, and their annotations."""
    return {
        field.target.id: ast.unparse(field.annotation)
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name in classes
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    }


def _fields_below(package: Path, name: str) -> Iterable[str]:
    return {field for _, tree in _trees(package / ENTRYPOINTS) for field in _fields(tree, name)}


def _calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield getattr(node.func, "attr", getattr(node.func, "id", "")), node


def _added(tree: ast.Module) -> Iterator[str]:
    """Give the long options that a parser is given."""
    for name, call in _calls(tree):
        if name == "add_argument":
            yield from (text for text in map(_text, call.args) if text is not None and text.startswith("--"))


def _literals(tree: ast.Module, name: re.Pattern[str]) -> set[str]:
    """Return the strings in the types of a name."""
    return {
        text
        for node in tree.body
        if isinstance(node, ast.Assign) and name.fullmatch(ast.unparse(node.targets[0]))
        for text in map(_text, ast.walk(node.value))
        if text is not None
    }


def _keys(tree: ast.Module, name: str) -> set[str]:
    (found,) = [
        node.value for node in tree.body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name and isinstance(node.value, ast.Dict)
    ]  # fmt: skip
    return {text for text in map(_text, found.keys) if text is not None}


def _exposed(tree: ast.Module) -> Iterator[str]:
    """Give metrics as ``name kind``, as a class makes them: by a keyword, or from a table of (name, documentation)."""
    for owner in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        made = [(kind, call) for kind, call in _calls(owner) if re.fullmatch("_(gauge|counter|histogram)_cls", kind)]
        for kind, call in made:
            for keyword in call.keywords:
                if keyword.arg == "name" and (name := _text(keyword.value)) is not None:
                    yield f"{name} {kind[1:-4]}"
        by_table = {kind for kind, call in made for keyword in call.keywords
                    if keyword.arg == "name" and isinstance(keyword.value, ast.Name)}  # fmt: skip
        for row in (node for node in ast.walk(owner) if isinstance(node, ast.Tuple) and node.elts):
            if len(by_table) == 1 and (name := _text(row.elts[0])) is not None and name.startswith("vllm:"):
                yield f"{name} {next(iter(by_table))[1:-4]}"


def _routes(tree: ast.Module) -> Iterator[str]:
    for name, call in _calls(tree):
        if name in ("get", "post", "Mount") and call.args and (path := _text(call.args[0])) and path.startswith("/"):
            yield path


def _raised(tree: ast.Module) -> Iterator[str]:
    """Give the messages of the errors that are raised in place."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            text = _text(node.exc.args[0])
            if text is not None:
                yield f"{ast.unparse(node.exc.func)}: {' '.join(text.split())}"


def _is_of_memory(message: str) -> bool:
    """Return whether a message is about too little of the device's or the processor's memory, by its own words."""
    return re.search(r"(available|free) memory|KV cache is needed|out of memory", message, re.IGNORECASE) is not None


def _modules(package: Path) -> Iterator[str]:
    """Give ``module name`` of what `speclab.engines` imports or starts, wherever it is defined."""
    for folder in (ENTRYPOINTS, "utils"):
        for file, tree in _trees(package / folder):
            module = ".".join(("vllm", *file.relative_to(package).with_suffix("").parts)).removesuffix(".__init__")
            for name in ("make_arg_parser", "FlexibleArgumentParser"):
                if _defines(tree, name):
                    yield f"{module} {name}"
            if any(isinstance(node, ast.If) and "__main__" in ast.unparse(node.test) for node in tree.body):
                yield f"{module} __main__"


def _text(node: ast.AST | None) -> str | None:
    """Return a string as it is written, `HOLE` for each value in it; None where the node is no string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or HOLE for part in node.values)
    return None


if __name__ == "__main__":
    version, folder = sys.argv[1:]
    known = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    FILE.write_text(dumped({**known, version: names(Path(folder))}), encoding="utf-8")
