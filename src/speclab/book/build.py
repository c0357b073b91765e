"""Bring the book's executed notebooks up to date, and the files derived from them.

A page is out of date when its key (`speclab.book.pages.Page.key`), or any file it left, differs from the note of its
last run in ``.build/pages.json``. The arms come first: the files they leave decide the analyses. Then the contents, the
labs' sources and the tables of the status page are written to match.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing.util import Finalize
from pathlib import Path

from rich.console import Console

from speclab import lab as labs
from speclab import paths, whole
from speclab.book import contents, listing, pages, sources
from speclab.book.kernel import WarmKernel
from speclab.book.pages import Page
from speclab.cache.notes import Notes

WORKERS = 2
DRAWN = ("figures", "tables", "widgets")
OF_NO_LAB = "no lab"
_KERNEL = WarmKernel()  # of this process


def notes(*, forget: bool = False) -> Notes:
    """Return the notes on the pages' last runs."""
    return Notes(paths.root() / ".build" / "pages.json", forget=forget)


def stale(candidates: Sequence[Page], noted: Notes) -> list[Page]:
    """Return the pages whose inputs or outputs are not those of their last run."""
    return [page for page in candidates if not noted.is_fresh(page.name, page.key, page.left)]


def run(console: Console, *, everything: bool = False) -> bool:
    """Execute what is out of date and write the derived files; return whether all pages ran to their end.

    Parameters
    ----------
    console : Console
        Prints a line for each page as it ends.
    everything : bool
        Whether to execute all pages.
    """
    noted = notes(forget=everything)
    spawn = multiprocessing.get_context("spawn")  # forking a process with threads may hang
    with ProcessPoolExecutor(WORKERS, spawn, initializer=_prepare_worker) as pool:  # starts workers on demand
        if not _execute_all(pool, console, "arms", stale(pages.runs(), noted), noted):
            return False
        for lab, source in sources.update().items():
            console.print(f"{lab}: its numbers are now {source}", markup=False)
        analyses = pages.analyses()  # their inputs are known only once the arms have been run
        lost = [shelf for shelf in _shelves() if not noted.is_fresh(f"drawn {shelf}", "", _drawn(shelf))]
        out_of_date = {page.name for page in stale(analyses, noted)}
        # the notes do not say which page of a lab kept a figure or table that is missing or edited
        todo = [page for page in analyses if page.name in out_of_date or _shelf_of(page) in lost]
        if not _execute_all(pool, console, "analyses", todo, noted):
            return False
    listing.write()
    write_contents()
    for shelf in _shelves():
        noted.keep(f"drawn {shelf}", "", _drawn(shelf))
    return True


def write_contents() -> None:
    """Write the list of notebooks into the book's contents, where it differs from the one there."""
    text = contents.file().read_text(encoding="utf-8")
    updated = contents.with_notebooks(text, [*pages.runs(), *pages.analyses()])
    whole.update(contents.file(), updated, "the contents of the book")


def _shelves() -> list[str]:
    """Return the labs, and the name for pages of no lab."""
    return [*labs.names(), OF_NO_LAB]


def _shelf_of(page: Page) -> str:
    return next((lab for lab in labs.names() if page.name.startswith(f"analysis/{lab}/")), OF_NO_LAB)


def _drawn(shelf: str) -> list[Path]:
    """Return the figures, tables and pieces of HTML that a lab's analyses keep for the chapters, or those of no lab."""
    files = [file for folder in DRAWN for file in (paths.book() / folder).glob("*.*")]
    others = tuple(f"{lab}_" for lab in labs.names())
    return [
        file
        for file in files
        if (file.name.startswith(f"{shelf}_") or (shelf == OF_NO_LAB and not file.name.startswith(others)))
    ]


def _execute_all(pool: ProcessPoolExecutor, console: Console, what: str, todo: Sequence[Page], noted: Notes) -> bool:
    console.print(f"{what}: {len(todo)} to execute")
    failures = 0
    # the key is taken before the run: an edit made meanwhile leaves the page out of date
    started = {pool.submit(execute, page): (page, page.key) for page in todo}
    for done, future in enumerate(as_completed(started), start=1):
        page, key = started[future]
        problem, seconds = future.result()
        result = "FAILED" if problem else "ok"
        console.print(f"  [{done}/{len(todo)}] {page.name} {result}, {seconds:.1f} s", markup=False)
        if problem:
            failures += 1
            console.print(problem, markup=False, soft_wrap=True)
        else:
            noted.keep(page.name, key, page.left)
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
    """Prepare a worker to stop its kernel, and send kernels' own messages (not what notebooks print) to a log."""
    log = paths.root() / ".build" / "kernels.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    Finalize(None, _KERNEL.stop, exitpriority=1)  # workers do not run atexit handlers
