"""The conditions of ``{when}``: the kind of a lab's results, or how a pasted value compares.

A condition is one clause or several joined by ``and``. A clause is one of

- ``LAB simulated``, ``LAB measured``
- ``NOTEBOOK::KEY < NUMBER``, also with ``<= > >= == !=``, and with another key in place of the number
- ``NOTEBOOK::KEY is "TEXT"``
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping

from speclab.book.lab_source import LabSource

Value = int | float | str
Lookup = Callable[[str], Value | None]
"""Returns what a key (``NOTEBOOK::KEY``) was pasted as, or None."""

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_KEY = r"\S+\.ipynb::\S+"
_KIND = re.compile(r"(?P<lab>[\w.-]+) (?P<kind>simulated|measured)")
_IS = re.compile(rf'(?P<key>{_KEY}) is "(?P<text>[^"]*)"')
_COMPARISON = re.compile(rf"(?P<key>{_KEY}) (?P<operator><=?|>=?|==|!=) (?P<other>{_KEY}|[+-]?\d+(\.\d+)?)")


class ConditionError(ValueError):
    """A condition in none of the three forms, or one that names a lab without results in the book."""


def holds(condition: str, sources: Mapping[str, LabSource], lookup: Lookup) -> bool | None:
    """Return whether a condition holds; None where a value that decides it is missing or not a number.

    Raises
    ------
    ConditionError
        It cannot be read.
    """
    clauses = [_holds(clause.strip(), sources, lookup) for clause in condition.split(" and ")]
    if False in clauses:
        return False
    return None if None in clauses else True


def _holds(clause: str, sources: Mapping[str, LabSource], lookup: Lookup) -> bool | None:
    if match := _KIND.fullmatch(clause):
        if match["lab"] not in sources:
            raise ConditionError(f"condition {clause!r}: the book has no results of a lab {match['lab']!r}")
        return sources[match["lab"]].kind == match["kind"]
    if match := _IS.fullmatch(clause):
        value = lookup(match["key"])
        return None if value is None else str(value) == match["text"]
    if match := _COMPARISON.fullmatch(clause):
        values = [_number(lookup(side) if "::" in side else side) for side in (match["key"], match["other"])]
        return None if None in values else _OPERATORS[match["operator"]](*values)  # type: ignore[arg-type]
    raise ConditionError(
        f'condition {clause!r}: write LAB simulated, NOTEBOOK::KEY < NUMBER or NOTEBOOK::KEY is "TEXT"'
    )


def _number(value: Value | None) -> float | None:
    """Return a value as a number: a crossover is pasted as text, which may be "180" or "not reached"."""
    try:
        return None if value is None else float(value)
    except ValueError:
        return None
