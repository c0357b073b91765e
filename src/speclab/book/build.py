"""Execute the notebooks of the book that are out of date: ``python -m speclab.book.build``.

A page is out of date when a hash of what decides it (template, parameters, YAML, tables, code, locked versions) or of
what it left differs from the one noted in ``.build/pages.json`` at its last run. Times of files say nothing: git
sets them freely.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import sys
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing.util import Finalize
from pathlib import Path

from rich.console import Console

from speclab import paths
from speclab.book import listing, pages
from speclab.book.kernel import WarmKernel
from speclab.book.pages import Page
from speclab.errors import UserError
from speclab.record import whole
from speclab.replications.chapter10 import cached_tables

WORKERS = 2
_KERNEL = WarmKernel()  # of this process


def main(arguments: Sequence[str] | None = None) -> int:
    """Bring the notebook pages up to date; return 0, or 1 when one failed."""
    parser = ArgumentParser(prog="python -m speclab.book.build", description="Execute the notebooks out of date.")
    parser.add_argument("--all", action="store_true", help="execute every notebook")
    parser.add_argument("--list", action="store_true", help="only say which are out of date")
    options = parser.parse_args(arguments)
    console = Console(stderr=True, highlight=False)
    try:
        return _build(console, everything=options.all, only_list=options.list)
    except UserError as error:
        console.print(f"[red]{error}[/red]", soft_wrap=True)
        return 1


def stale(candidates: Sequence[Page], notes: dict[str, dict[str, str]]) -> list[Page]:
    """Return the pages whose inputs or outputs are not those of their last run.

    Parameters
    ----------
    candidates : sequence of Page
        Pages to look at.
    notes : dict
        For each page's name: ``stamp`` and ``left`` of its last run.
    """
    return [
        page for page in candidates if notes.get(page.name) != {"stamp": pages.stamp(page), "left": pages.left(page)}
    ]


def _build(console: Console, *, everything: bool, only_list: bool) -> int:
    file = paths.root() / ".build" / "pages.json"
    notes = {} if everything or not file.exists() else json.loads(file.read_text(encoding="utf-8"))
    console.print(f"model tables: {len(cached_tables.stale())} of {len(cached_tables.TABLES)} to make")
    if not only_list:
        cached_tables.refresh(progress=lambda name: console.print(f"  {name}"))
    spawn = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
    with ProcessPoolExecutor(WORKERS, spawn, initializer=_prepare_worker) as pool:  # starts workers when it gets work
        for title, find in (("arms", pages.runs), ("analyses", pages.analyses)):
            candidates = find()  # the analyses' inputs are known only once the arms have been run
            if title == "analyses" and notes.get("drawn", {}).get("left") != pages.drawn():
                todo = candidates  # which of them kept what is missing or edited is not noted
            else:
                todo = stale(candidates, notes)
            console.print(f"{title}: {len(todo)} of {len(candidates)} to execute")
            if only_list:
                console.print("".join(f"  {page.name}\n" for page in todo), end="")
            elif not _execute_all(pool, console, todo, notes, file):
                return 1
    if not only_list:
        listing.write()
        notes["drawn"] = {"left": pages.drawn()}
        _note(file, notes)
    return 0


def _execute_all(
    pool: ProcessPoolExecutor, console: Console, todo: Sequence[Page], notes: dict[str, dict[str, str]], file: Path
) -> bool:
    failures = 0
    # the stamp is taken before the run: an edit made meanwhile leaves the page out of date
    started = {pool.submit(execute, page): (page, pages.stamp(page)) for page in todo}
    for done, future in enumerate(as_completed(started), start=1):
        page, stamp = started[future]
        problem, seconds = future.result()
        result = "FAILED" if problem else "ok"
        console.print(f"  [{done}/{len(todo)}] {page.name} {result}, {seconds:.1f} s", markup=False)
        if problem:
            failures += 1
            console.print(problem, markup=False, soft_wrap=True)
        else:
            notes[page.name] = {"stamp": stamp, "left": pages.left(page)}
            _note(file, notes)
    return failures == 0


def execute(page: Page) -> tuple[str | None, float]:
    """Execute one page; return what went wrong, if anything, and the seconds it took.

    The page is replaced only by a notebook that ran to its end; one that failed is kept in ``.build/failed/``.
    """
    import papermill  # heavy, and needed in the workers only
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    logging.getLogger("papermill").setLevel(logging.WARNING)
    os.environ.setdefault("MPLBACKEND", "agg")
    began = time.monotonic()
    draft = paths.root() / ".build" / "failed" / f"{page.name}.ipynb"
    draft.parent.mkdir(parents=True, exist_ok=True)
    page.notebook.parent.mkdir(parents=True, exist_ok=True)
    try:
        papermill.execute_notebook(
            page.template,
            draft,
            page.parameters,
            engine_name="speclab",
            progress_bar=False,
            cwd=paths.root(),
            km=_KERNEL.manager(),
        )
    except PapermillExecutionError as error:
        _KERNEL.stop()
        problem = f"{error.ename}: {error.evalue} (cell {error.exec_count}; see {paths.shown(draft)})"
        return problem, time.monotonic() - began
    except DeadKernelError:
        _KERNEL.stop()
        return f"the kernel died (see {paths.shown(draft)} and .build/kernels.log)", time.monotonic() - began
    draft.replace(page.notebook)
    return None, time.monotonic() - began


def _prepare_worker() -> None:
    """Give a worker its kernel, and send what kernels say on their own (not what notebooks print) to a log."""
    log = paths.root() / ".build" / "kernels.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    Finalize(None, _KERNEL.stop, exitpriority=1)  # workers do not run what atexit holds


def _note(file: Path, notes: dict[str, dict[str, str]]) -> None:
    whole.write(file, json.dumps(notes, indent=1, sort_keys=True), "the notes of the build")


if __name__ == "__main__":
    sys.exit(main())
