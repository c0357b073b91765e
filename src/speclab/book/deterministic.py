"""Make an executed notebook depend on its content only: its heading, its tags, and what is removed from it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from nbformat import NotebookNode

from speclab import paths

SAME_EVERYWHERE = {
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    "OPENBLAS_CORETYPE": "Haswell",
}
"""Environment of every notebook's kernel: NumPy and OpenBLAS use instructions that every x86-64 machine of the last ten
years has. With wider ones a sum differs in its last bit, and a figure computed from it in a digit. Other processors
ignore them."""

HEADING = re.compile(r"^# .*$", re.MULTILINE)
_FIGURE = re.compile(r"^(!\[[^\]]*\]\()[^)]*?([^/)]+\.svg\))")


def head(nb: NotebookNode) -> None:
    """Write the notebook's first heading from its parameters.

    The template's metadata ``speclab.heading`` holds the text, with parameters in braces (``{label} ({lab})``); without
    it, or when a parameter was not given, the template's own heading stays. Otherwise all runs of one template would
    have the same heading.
    """
    text = nb.metadata.get("speclab", {}).get("heading")
    parameters = nb.metadata.get("papermill", {}).get("parameters", {})
    if text is None:
        return
    try:
        heading = f"# {text.format_map(parameters)}"
    except KeyError:
        return
    for cell in nb.cells:
        if cell.cell_type == "markdown" and HEADING.search(cell.source):
            cell.source = HEADING.sub(lambda _: heading, cell.source, count=1)
            return


def tag(nb: NotebookNode) -> None:
    """Show a reader of the page only the parameters that were used, folded."""
    tags = [set(cell.metadata.get("tags", [])) for cell in nb.cells]
    if not any("injected-parameters" in cell_tags for cell_tags in tags):
        return
    for cell, cell_tags in zip(nb.cells, tags, strict=True):
        if "injected-parameters" in cell_tags:
            cell.metadata["tags"] = sorted(cell_tags | {"hide-input"})
        elif "parameters" in cell_tags:
            cell.metadata["tags"] = sorted(cell_tags | {"remove-cell"})


def normalise(nb: NotebookNode) -> NotebookNode:
    """Remove from an executed notebook whatever its content does not determine.

    Returns
    -------
    NotebookNode
        The same notebook, changed in place.
    """
    papermill = nb.metadata.get("papermill", {})
    nb.metadata["papermill"] = {"parameters": papermill.get("parameters", {})}
    if papermill.get("exception"):
        nb.metadata["papermill"]["exception"] = True
    language = nb.metadata.get("language_info", {})
    # the patch release of Python and the editor's mode say nothing about the content
    nb.metadata["language_info"] = {key: language[key] for key in ("name", "pygments_lexer") if key in language}
    for position, cell in enumerate(nb.cells):
        cell["id"] = f"cell-{position:02d}"
        failed = cell.metadata.get("papermill", {}).get("exception")
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        if failed:
            cell.metadata["papermill"] = {"exception": True}
        if cell.cell_type == "code":
            cell["outputs"] = _joined(cell.outputs)
    return nb


def refer(nb: NotebookNode, folder: Path) -> NotebookNode:
    """Make an executed notebook's references to its figures (`speclab.figures.keep`) relative to its own folder.

    Returns
    -------
    NotebookNode
        The same notebook, changed in place.
    """
    figures = Path(os.path.relpath(paths.book() / "figures", folder)).as_posix()
    for cell in nb.cells:
        for output in cell.get("outputs", []):
            if "text/markdown" in (data := output.get("data", {})):
                data["text/markdown"] = _FIGURE.sub(rf"\g<1>{figures}/\g<2>", data["text/markdown"])
    return nb


def _joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Join neighbouring pieces of one stream: where a kernel splits them is arbitrary."""
    joined: list[NotebookNode] = []
    for output in outputs:
        last = joined[-1] if joined else None
        if output.output_type == "stream" and last is not None and last.get("name") == output.name:
            last["text"] += output.text
        else:
            joined.append(output)
    return joined
