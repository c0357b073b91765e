"""The command that makes the book's notebooks: ``speclab book``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console


def book(
    everything: Annotated[bool, typer.Option("--all", help="Execute every notebook.")] = False,
    only_list: Annotated[bool, typer.Option("--list", help="Only list what is out of date.")] = False,
) -> None:
    """Bring the book's notebooks up to date: every lab as it was simulated or measured, and what depends on it."""
    from speclab.book import build, pages
    from speclab.replications.chapter10 import cached_tables

    console = Console(stderr=True, highlight=False)
    if only_list:
        for title, candidates in (("arms", pages.runs()), ("analyses", pages.analyses())):
            todo = build.stale(candidates, build.notes())
            console.print(f"{title}: {len(todo)} of {len(candidates)} to execute")
            console.print("".join(f"  {page.name}\n" for page in todo), end="")
        return
    console.print(f"model tables: {len(cached_tables.stale())} of {len(cached_tables.TABLES)} to make")
    cached_tables.refresh(progress=lambda name: console.print(f"  {name}"))
    if not build.run(console, everything=everything):
        raise typer.Exit(1)
