"""Keys: one hash for all that decides a thing, joined from code, files and values."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy
from pydantic import BaseModel

from speclab import paths


def joined(*parts: str) -> str:
    """Return one hash of several hashes or texts; their order counts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def of_files(files: Iterable[Path]) -> str:
    """Return a hash of files' names and contents; a file that is missing counts as such."""
    digest = hashlib.sha256()
    for file in sorted(set(files)):
        digest.update(f"\0{_name(file)}\0".encode())
        digest.update(file.read_bytes() if file.is_file() else b"\0missing")
    return digest.hexdigest()


def _name(file: Path) -> str:
    """Return a file's path in the checkout, without resolving links."""
    root = paths.root().absolute()
    file = file.absolute()
    return (file.relative_to(root) if file.is_relative_to(root) else file).as_posix()


def of_values(*values: object) -> str:
    """Return a hash of values: plain ones, and models, data classes, lists and mappings of them.

    Raises
    ------
    TypeError
        A value is none of these.
    """
    return hashlib.sha256(json.dumps(values, default=_plain, sort_keys=True).encode()).hexdigest()


def of_tables(*tables: pd.DataFrame) -> str:
    """Return a hash of tables: columns, types, index and values."""
    digest = hashlib.sha256()
    for table in tables:
        digest.update(repr([(str(name), str(table[name].dtype)) for name in table.columns]).encode())
        digest.update(pd.util.hash_pandas_object(table).to_numpy().tobytes())
    return digest.hexdigest()


def of_arithmetic() -> str:
    """Return a hash of what decides last bits: versions, and the instructions that NumPy and OpenBLAS use."""
    versions = [np.__version__, pd.__version__, scipy.__version__]
    simd = np.show_config(mode="dicts")["SIMD Extensions"]
    return of_values(versions, simd, os.environ.get("OPENBLAS_CORETYPE"))


def _plain(value: object) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): item for key, item in value.items()}
    if isinstance(value, Path):
        return paths.shown(value)
    raise TypeError(f"no value to hash: {value!r}")
