"""The record of a text check: the same prompts, written once by each arm."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from pydantic import ValidationError

from speclab import whole
from speclab.config import Frozen
from speclab.engines.writing import TextAnswer
from speclab.errors import UserError
from speclab.lab import EngineName, Sampling, ServerFlag, Speculation
from speclab.record.schema import Failure, Provenance


class ArmText(Frozen):
    """What one arm wrote, and how it was served."""

    arm: str
    speculation: Speculation | None
    server: dict[str, ServerFlag]
    provenance: Provenance
    answers: tuple[TextAnswer, ...]
    failure: Failure | None = None

    @property
    def problem(self) -> str | None:
        """What kept the arm from writing all its answers; None where nothing did."""
        if self.failure is not None:
            return f"{self.failure.kind}: {self.failure.reason}"
        errors = [answer.error for answer in self.answers if answer.error is not None]
        return f"{len(errors)} of {len(self.answers)} requests failed; the first: {errors[0]}" if errors else None

    def table(self) -> pd.DataFrame:
        """Return the answers as `speclab.metrics.text.compare` takes them."""
        return pd.DataFrame([answer.model_dump() for answer in self.answers], columns=list(TextAnswer.model_fields))


class TextRecord(Frozen):
    """A whole text check; the baseline is one of its arms."""

    schema_version: int = 1
    lab: str
    engine: EngineName
    device: str
    target: str
    dtype: str
    sampling: Sampling
    environment: dict[str, str]
    prompts_sha256: dict[str, str]
    """Of each workload's whole set of prompts; the check takes the first of them."""
    arms: tuple[ArmText, ...]


def file_of(runs: Path, record: TextRecord) -> Path:
    """Return where a check is kept: ``<runs>/<engine>-<device>/<lab>/text-<dtype>.json``."""
    return runs / f"{record.engine}-{record.device}" / record.lab / f"text-{record.dtype}.json"


def write(runs: Path, record: TextRecord) -> Path:
    """Write a check whole or not at all, and return its file.

    Raises
    ------
    UserError
        The folder cannot be written.
    """
    file = file_of(runs, record)
    whole.write(file, record.model_dump_json() + "\n", "the text check")
    return file


def read(file: Path) -> TextRecord:
    """Return the check in a file.

    Raises
    ------
    UserError
        There is none, or it is of a shape that this version does not know.
    """
    try:
        return TextRecord.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        raise UserError("no text check here", "make it: speclab text-check LAB", file=file) from None
    except ValidationError as error:
        raise UserError(f"not a text check ({error.errors()[0]['msg']})", "make it again", file=file) from None
