"""The code that decides a result: the definitions that are reached from a function, as syntax trees.

Comments, docstrings and the layout of the source do not count, nor does a definition beside those that are reached.
Names are followed: imports, uses, attributes of modules. A class counts as a whole; a method is reached with it. Code
that is found by other means than its name (``importlib``, entry points) is not seen.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

PACKAGE = "speclab"
REST = ""
"""The name for a module's statements that define nothing: they run whenever the module is imported."""


@dataclass(frozen=True)
class Definition:
    """One name of a module: its syntax, and the names that it uses."""

    syntax: str
    uses: frozenset[str]
    imports: dict[str, str] = field(default_factory=dict)
    """Names that it imports itself, inside a function."""
    reads_files: bool = False
    """Whether it reads files of its package: then the files beside the module count too."""


@dataclass(frozen=True)
class Module:
    """A module's definitions by name, and its imports: local name to dotted name."""

    definitions: dict[str, Definition]
    imports: dict[str, str]


class Source:
    """The source of a package, parsed module by module as it is needed.

    Parameters
    ----------
    folder : Path, optional
        The package's folder; the running package's by default.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path(__file__).parents[1]
        self._modules: dict[str, Module | None] = {}
        self._reached: dict[str, frozenset[tuple[str, str]]] = {}

    def sha256(self, *entries: str, by_value: Iterable[str] = ()) -> str:
        """Return a hash of all that some definitions reach.

        Parameters
        ----------
        *entries : str
            Dotted names: ``speclab.roofline.step.StepModel``; a module's name stands for all that it defines.
        by_value : iterable of str
            Dotted names of tables that do not count as code, since the caller hashes the values that it uses.

        Raises
        ------
        LookupError
            There is no such definition.
        """
        places = [place for entry in entries for place in self._entry(entry)]
        return self._hash(self.reached(places), by_value)

    def of_text(self, text: str, by_value: Iterable[str] = ()) -> str:
        """Return a hash of a piece of code (a notebook's cells, joined) and of all that it reaches."""
        body = ast.parse(text)
        module = _module(body, PACKAGE, is_package=False)
        places: set[tuple[str, str]] = set()
        for definition in module.definitions.values():
            places |= set(self._targets(module, definition, PACKAGE))
        syntax = "\n".join(sorted(definition.syntax for definition in module.definitions.values()))
        return hashlib.sha256((syntax + self._hash(self.reached(places), by_value)).encode()).hexdigest()

    def reached(self, places: Iterable[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """Return every (module, name) that some places reach, themselves among them."""
        seen: set[tuple[str, str]] = set()
        todo = list(places)
        while todo:
            place = todo.pop()
            if place in seen:
                continue
            seen.add(place)
            todo.extend(self._from(place))
        return frozenset(seen)

    def _from(self, place: tuple[str, str]) -> frozenset[tuple[str, str]]:
        name, of = place
        module = self._parsed(name)
        if module is None or of not in module.definitions:
            return frozenset()
        key = f"{name}:{of}"
        if key not in self._reached:
            targets = set(self._targets(module, module.definitions[of], name))
            if REST in module.definitions:
                targets.add((name, REST))
            self._reached[key] = frozenset(targets)
        return self._reached[key]

    def _targets(self, module: Module, definition: Definition, name: str) -> Iterator[tuple[str, str]]:
        for use in definition.uses:
            first, _, rest = use.partition(".")
            if first in definition.imports:
                yield from self._entry(definition.imports[first], rest)
            elif first in module.definitions:
                yield name, first
            elif first in module.imports:
                yield from self._entry(module.imports[first], rest)

    def _entry(self, dotted: str, attributes: str = "") -> Iterator[tuple[str, str]]:
        """Yield the definitions that a dotted name and its attributes refer to."""
        if dotted != PACKAGE and not dotted.startswith(f"{PACKAGE}."):
            return
        parts = [*dotted.split("."), *(attributes.split(".") if attributes else [])]
        name = parts[0]
        for depth, part in enumerate(parts[1:], start=1):
            below = f"{name}.{part}"
            if self._parsed(below) is not None:
                name = below
                continue
            module = self._parsed(name)
            if module is not None and part in module.definitions:
                yield name, part
                return
            if module is not None and part in module.imports:  # re-exported by a package
                yield from self._entry(module.imports[part], ".".join(parts[depth + 1 :]))
                return
            if depth < len(dotted.split(".")):
                raise LookupError(f"{dotted}: {name} defines no {part}")
            break
        module = self._parsed(name)
        if module is not None:  # the module itself is passed around: all of it counts
            yield from ((name, defined) for defined in module.definitions)
            for target in module.imports.values():
                if target.startswith(f"{name}."):
                    yield from self._entry(target)

    def _hash(self, places: Iterable[tuple[str, str]], by_value: Iterable[str]) -> str:
        left_out = set(by_value)
        digest = hashlib.sha256()
        files: set[Path] = set()
        for name, of in sorted(places):
            module = self._parsed(name)
            if module is None or of not in module.definitions or f"{name}.{of}" in left_out:
                continue
            definition = module.definitions[of]
            digest.update(f"\0{name}.{of}\0{definition.syntax}".encode())
            beside = self._file(name).parent
            if definition.reads_files and beside != self._folder:  # there it only locates the package
                files |= {file for file in beside.rglob("*") if _is_data(file)}
        for file in sorted(files):
            digest.update(f"\0{file.relative_to(self._folder).as_posix()}\0".encode() + file.read_bytes())
        return digest.hexdigest()

    def _parsed(self, name: str) -> Module | None:
        if name not in self._modules:
            file = self._file(name)
            tree = ast.parse(file.read_text(encoding="utf-8")) if file.is_file() else None
            self._modules[name] = None if tree is None else _module(tree, name, is_package=file.name == "__init__.py")
        return self._modules[name]

    def _file(self, name: str) -> Path:
        path = self._folder.joinpath(*name.split(".")[1:])
        return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def package_source() -> Source:
    """Return the running package's source, parsed once for this process."""
    return Source()


def _is_data(file: Path) -> bool:
    return file.is_file() and file.suffix not in (".py", ".pyc")


class _Uses(ast.NodeVisitor):
    """The names that a piece of syntax uses, with the attributes after them, and what it imports itself."""

    def __init__(self, package: str) -> None:
        self.names: set[str] = set()
        self.imports: dict[str, str] = {}
        self._package = package

    def visit_Attribute(self, node: ast.Attribute) -> None:
        parts, inner = [node.attr], node.value
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            self.names.add(".".join([inner.id, *reversed(parts)]))
        else:
            self.visit(inner)

    def visit_Name(self, node: ast.Name) -> None:
        self.names.add(node.id)

    def visit_Import(self, node: ast.Import) -> None:
        self._imported(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self._imported(node)

    def _imported(self, node: ast.Import | ast.ImportFrom) -> None:
        imported = _imports(node, self._package)
        self.imports |= imported
        self.names |= set(imported)


def _module(tree: ast.Module, name: str, *, is_package: bool) -> Module:
    package = name if is_package else name.rpartition(".")[0]
    imports: dict[str, str] = {}
    pieces: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            imports |= _imports(statement, package)
        elif not _is_text(statement) and not _is_guard(statement):
            for bound in sorted(_bound(statement)) or [REST]:
                pieces.setdefault(bound, []).append(statement)
    return Module({bound: _definition(parts, package) for bound, parts in pieces.items()}, imports)


def _definition(statements: list[ast.stmt], package: str) -> Definition:
    uses = _Uses(package)
    syntax = []
    for statement in statements:
        bare = _without_docstrings(statement)
        uses.visit(bare)
        syntax.append(_dump(bare))
    return Definition("\n".join(syntax), frozenset(uses.names), uses.imports, _reads_files(uses.names))


def _reads_files(names: set[str]) -> bool:
    return "__file__" in names or any(name.partition(".")[0] == "resources" for name in names)


def _dump(node: object) -> str:
    """Return syntax as text that does not depend on Python's version: empty fields and positions are left out."""
    if isinstance(node, ast.AST):
        fields = ((name, value) for name, value in ast.iter_fields(node) if value not in (None, []) and name != "kind")
        return f"{type(node).__name__}({','.join(f'{name}={_dump(value)}' for name, value in fields)})"
    if isinstance(node, list):
        return f"[{','.join(map(_dump, node))}]"
    return repr(node)


def _imports(node: ast.Import | ast.ImportFrom, package: str) -> dict[str, str]:
    if isinstance(node, ast.Import):
        return {alias.asname or alias.name.split(".")[0]: alias.name if alias.asname else alias.name.split(".")[0]
                for alias in node.names}  # fmt: skip
    above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
    origin = ".".join([*above, *([node.module] if node.module else [])])
    return {alias.asname or alias.name: f"{origin}.{alias.name}" for alias in node.names}


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names that a module's statement defines, including those inside ``if``, ``try`` and ``with``."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    names: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
    return names


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_guard(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__main__" in ast.dump(statement.test)


def _without_docstrings(statement: ast.stmt) -> ast.stmt:
    for node in ast.walk(statement):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            node.body = [part for part in node.body if not _is_text(part)] or [ast.Pass()]
    return statement
