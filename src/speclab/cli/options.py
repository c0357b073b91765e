"""What several commands share: arguments, and how lists are given."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from speclab.errors import UserError

err = Console(stderr=True)

LabName = Annotated[str, typer.Argument(help="A folder of labs/.")]
EngineOption = Annotated[
    Literal["simulated", "endpoint", "vllm"] | None, typer.Option(help="What serves; the lab's own by default.")
]
ListOption = Annotated[str | None, typer.Option(help="Comma-separated part of the lab's.")]
DataOption = Annotated[Path | None, typer.Option(help="Another data folder than data/.")]


def split(value: str | None) -> list[str] | None:
    """Return the parts of a comma-separated list, each once; None where nothing is given."""
    return None if value is None else list(dict.fromkeys(part.strip() for part in value.split(",")))


def whole_numbers(value: str | None) -> list[int]:
    """Return the whole numbers of a comma-separated list."""
    try:
        return [int(part) for part in split(value) or ()]
    except ValueError:
        raise UserError(f"found {value!r}", "give whole numbers, comma-separated", key="--concurrencies") from None
