"""Figures that other people published, for comparison; each row gives its source."""

from __future__ import annotations

import pandas as pd

from speclab import paths, prompts
from speclab.book import badge
from speclab.errors import UserError
from speclab.replications.lab09.against import against
from speclab.results.lab import Results


def read(name: str) -> pd.DataFrame:
    """Return a table of published figures.

    Parameters
    ----------
    name : str
        File in the folder of published figures, without ``.csv`` (``lab09``).

    Returns
    -------
    pd.DataFrame
        ``id, finding, quantity, arm, workload, concurrency, value, low, high, unit, kind, source``. `finding` is the
        name under which a lab's own findings hold the same figure, null where there is none; `value` is null where a
        range was published; `kind` is ``stated`` or ``derived`` (with how). The table ``others_measured``
        has ``method, k, dataset, position, model, device, engine`` in place of the arm; its `workload` is the
        lab's that is closest to the data set, null where none is.

    Raises
    ------
    UserError
        There is no such table.
    """
    file = paths.published() / f"{name}.csv"
    if not file.exists():
        known = ", ".join(sorted(path.stem for path in paths.published().glob("*.csv")))
        raise UserError(f"no published figures {name!r}", f"there are: {known}", file=paths.published())
    return pd.read_csv(file, comment="#")


def beside(lab: str) -> pd.DataFrame:
    """Return the published figures that a lab is compared with, as `read` does; no rows for a lab of our own."""
    is_published = (paths.published() / f"{lab}.csv").exists()
    return read(lab) if is_published else read("lab09").iloc[:0]


def and_ours(results: Results) -> pd.DataFrame:
    """Return the figures published for a lab with the lab's own beside them (`speclab.replications.lab09.against`)."""
    lengths = prompts.summary(results.lab.target.tokens)
    prompt_tokens = {
        str(workload): float(mean) for workload, mean in zip(lengths["workload"], lengths["mean_tokens"], strict=True)
    }
    is_measured = badge.kind(results.source) == "measured"
    return against(results.findings, beside(results.lab.name), prompt_tokens, is_measured=is_measured)
