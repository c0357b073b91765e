"""The columns that say where a row stands, from the narrowest place to the widest."""

from __future__ import annotations

from collections.abc import Hashable

CELL = ["source", "arm", "workload", "concurrency"]
"""One cell, its repeats together."""

BESIDE = ["source", "workload", "concurrency"]
"""What a cell and its baseline have in common, apart from the repeat."""

CURVE = ["source", "arm", "workload"]
"""One arm's cells over concurrency."""

Key = tuple[Hashable, ...]
"""A finding's name, then the values of `CELL`."""
