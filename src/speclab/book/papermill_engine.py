"""The papermill engine ``speclab``: two runs of one notebook on one machine give the same bytes.

What differs between two plain papermill runs is removed (times, paths, random cell ids) or normalised (stream outputs).
Of papermill's own metadata only the parameters are kept, and whether a cell failed.

Papermill imports this module through its entry point while it is itself being imported: import papermill first.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from papermill.engines import NBClientEngine

from speclab import paths
from speclab.book import deterministic


class DeterministicEngine(NBClientEngine):
    """Runs a notebook as papermill does, and keeps only what the notebook's content determines."""

    @classmethod
    def execute_notebook(cls, nb: NotebookNode, kernel_name: str, *args: Any, **kwargs: Any) -> NotebookNode:
        """Run a notebook.

        Parameters
        ----------
        nb : NotebookNode
            A notebook with its parameters already injected; changed in place.
        kernel_name : str
            The kernel to run it in.
        *args, **kwargs
            Those of `papermill.engines.Engine.execute_notebook`.

        Returns
        -------
        NotebookNode
            The executed notebook, without times, paths and random ids. A failed cell is marked as papermill expects.
        """
        deterministic.head(nb)
        deterministic.tag(nb)
        kwargs["record_timing"] = False
        os.environ.update(deterministic.SAME_EVERYWHERE)  # the kernel inherits them
        output = nb.metadata.get("papermill", {}).get("output_path")
        executed = deterministic.normalise(super().execute_notebook(nb, kernel_name, *args, **kwargs))
        folder = Path(output).resolve().parent if output and "://" not in output else None
        if folder is None or folder.is_relative_to(paths.root() / ".build"):  # a page that is not finished yet
            return executed
        return deterministic.refer(executed, folder)
