"""Read a YAML file into a frozen model, and turn the first mistake in it into one line for its author."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from speclab.errors import UserError


class Frozen(BaseModel):
    """A value object: immutable, and unknown keys are mistakes."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Chosen(Frozen):
    """A value object that a person writes: its numbers must also be finite."""

    model_config = ConfigDict(allow_inf_nan=False)


ModelT = TypeVar("ModelT", bound=BaseModel)

ADVICE = {
    "bool_type": "write true or false",
    "dict_type": "write keys and values below it",
    "finite_number": "give a finite number",
    "float_parsing": "give a number",
    "float_type": "give a number",
    "int_from_float": "give a whole number",
    "int_type": "give a whole number",
    "list_type": "write a list: [1, 4]",
    "model_type": "write keys and values below it",
    "string_pattern_mismatch": "use letters, digits, '_', '-' and '.', and begin with a letter or a digit",
    "string_type": "write text; quote what looks like a number",
    "too_short": "give at least one",
    "tuple_type": "write a list, as in [a, b]",
}
"""What to write instead, by pydantic's name of the mistake."""

ALTERNATIVES = ("str", "int", "float", "bool", "list[int]", "dict[str,any]")
"""What pydantic appends to the place of a mistake where a value may be of several types."""


class _RepeatedKey(yaml.YAMLError):
    def __init__(self, key: str, line: int):
        self.key, self.line = key, line
        super().__init__(f"{key} in line {line}")


class _Loader(yaml.SafeLoader):
    """YAML silently takes the last of two equal keys; to the author one of them is a mistake."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    raise _RepeatedKey(key.value, key.start_mark.line + 1)
                seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep)


def read_yaml(file: Path) -> dict[str, Any]:
    """Return a YAML file's mapping.

    Raises
    ------
    UserError
        The file is missing, is not YAML, or does not hold a mapping.
    """
    try:
        content = yaml.load(file.read_text(encoding="utf-8"), _Loader)
    except FileNotFoundError:
        beside = sorted(path.stem for path in file.parent.glob("*.yml"))
        raise UserError(
            "no such file",
            f"the folder holds {', '.join(beside)}" if beside else f"{file.parent} has no YAML file",
            file=file,
        ) from None
    except _RepeatedKey as repeated:
        problem = f"occurs twice, again in line {repeated.line}"
        raise UserError(problem, "keep one of them", file=file, key=repeated.key) from None
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror or error})", "give a UTF-8 text file", file=file) from None
    except UnicodeDecodeError as error:
        raise UserError(f"cannot be read ({error})", "give a UTF-8 text file", file=file) from None
    except (yaml.YAMLError, ValueError) as error:  # an impossible date is a ValueError
        raise UserError(f"not YAML ({' '.join(str(error).split())})", "fix the syntax", file=file) from None
    if not isinstance(content, dict):
        raise UserError(f"holds a {type(content).__name__}", "write a mapping of keys to values", file=file)
    return content


def validated(model: type[ModelT], content: dict[str, Any], file: Path | None = None) -> ModelT:
    """Return `content` as a `model`; the first thing wrong with it becomes a `UserError`."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise _as_user_error(model, error, file) from None


def _as_user_error(model: type[BaseModel], error: ValidationError, file: Path | None) -> UserError:
    errors = error.errors()  # a misspelt key is both unknown and missing: the former says more
    first = next((mistake for mistake in errors if mistake["type"] == "extra_forbidden"), errors[0])
    key = ".".join(str(part) for part in first["loc"]) or None
    if first["type"] == "extra_forbidden":
        name = str(first["loc"][-1])
        known = _keys_at(model, first["loc"][:-1])
        close = difflib.get_close_matches(name, known, n=1)
        remedy = f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(known)}"
        return UserError(f"unknown key {name!r} (value {_short(first['input'])})", remedy, file=file, key=key)
    if first["type"] == "missing":
        return UserError("missing", "add this key", file=file, key=key)
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error" and isinstance(first["input"], dict):
        return UserError(f"found {_named(message, first['input'])}", message, file=file, key=key)
    if len(first["loc"]) > 1 and first["loc"][-1] in ALTERNATIVES:
        key = ".".join(str(part) for part in first["loc"][:-1])
        remedy = "write text, a number, true or false, a list of whole numbers, or keys and values"
        return UserError(f"found {_short(first['input'])}", remedy, file=file, key=key)
    remedy = ADVICE.get(first["type"]) or message.replace("Input should be", "must be")
    return UserError(f"found {_short(first['input'])}", remedy[0].lower() + remedy[1:], file=file, key=key)


def _named(message: str, content: dict[str, Any]) -> str:
    """Return the keys and values that a message mentions."""
    words = set(re.findall(r"\w+", message))
    mentioned = {name: value for name, value in content.items() if name in words or str(value) in words}
    return ", ".join(f"{name}: {_short(value)}" for name, value in mentioned.items()) or "keys that do not fit together"


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) < 80 else shown[:77] + "..."


def _keys_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """Names that `model` knows at a location inside it; the outer names where the location does not resolve."""
    for part in loc:
        field = model.model_fields.get(str(part))
        if field is None:
            break
        candidates = [field.annotation, *getattr(field.annotation, "__args__", ())]
        inner = [c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)]
        if not inner:
            break
        model = inner[0]
    return list(model.model_fields)
