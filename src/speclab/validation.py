"""Read a YAML file into a frozen model, and turn what is wrong into one line for its author."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from speclab.errors import UserError


class Frozen(BaseModel):
    """A value object: immutable, and unknown keys are mistakes."""

    model_config = ConfigDict(frozen=True, extra="forbid")


ModelT = TypeVar("ModelT", bound=BaseModel)


def read_yaml(file: Path) -> dict[str, Any]:
    """Return a YAML file's mapping.

    Raises
    ------
    UserError
        The file is missing, is not YAML, or does not hold a mapping.
    """
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        beside = sorted(path.stem for path in file.parent.glob("*.yml"))
        raise UserError(
            "no such file",
            f"the folder holds {', '.join(beside)}" if beside else f"{file.parent} has no YAML file",
            file=file,
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot be read ({error})", "give a UTF-8 text file", file=file) from None
    except yaml.YAMLError as error:
        raise UserError(f"not YAML ({' '.join(str(error).split())})", "mend the syntax", file=file) from None
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
    first = next((found for found in errors if found["type"] == "extra_forbidden"), errors[0])
    key = ".".join(str(part) for part in first["loc"]) or None
    if first["type"] == "extra_forbidden":
        name = str(first["loc"][-1])
        known = _keys_at(model, first["loc"][:-1])
        close = difflib.get_close_matches(name, known, n=1)
        remedy = f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(known)}"
        return UserError(f"unknown key {name!r} (value {first['input']!r})", remedy, file=file, key=key)
    if first["type"] == "missing":
        return UserError("missing", "add this key", file=file, key=key)
    remedy = first["msg"].removeprefix("Value error, ")
    found = repr(first["input"])
    return UserError(
        f"found {found if len(found) < 80 else found[:77] + '...'}",
        remedy[0].lower() + remedy[1:],
        file=file,
        key=key,
    )


def _keys_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """Names that `model` knows at a location inside it; the outer names where that cannot be told."""
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
