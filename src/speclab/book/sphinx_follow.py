"""The part of the Sphinx extension by which pages follow the results: `follow` on each page, and its notices."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

from speclab.book import lab_source
from speclab.book.follow import follow

_LOG = logging.getLogger(__name__)


@dataclass
class _Kept:
    """What the environment keeps from build to build."""

    sources: bytes = b""
    decided_by: dict[str, set[str]] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)


class MissingRole(SphinxRole):
    """``{missing}`–` ``: in place of a figure that these results lack."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the text with the class ``missing-figure``."""
        return [nodes.inline("", self.text, classes=["missing-figure"])], []


def keep_what_holds(app: Sphinx, docname: str, content: list[str]) -> None:
    """Drop from a page, before it is parsed, what does not hold for the results."""
    env = app.env
    kept = _kept(env)
    file = Path(env.doc2path(docname))
    if file.suffix != ".md":
        return
    book = Path(app.srcdir)
    result = follow(content[0], file, book, lab_source.read(book))
    for problem in result.problems:
        _LOG.warning("%s", problem, location=docname, type="speclab", subtype="when")
    for missing in result.missing_files:
        env.note_dependency(str(missing))  # the page is read again once the file exists
    kept.decided_by[docname] = {_docname(book, notebook) for notebook in result.notebooks}
    kept.missing[docname] = len(result.missing)
    content[0] = result.text


def put_notices(app: Sphinx, doctree: nodes.document) -> None:
    """State at the top of a page what is wrong with its lab's results, and how many of its figures they lack."""
    env = app.env
    kept = _kept(env)
    labs = lab_source.read(Path(app.srcdir))
    lab = lab_source.owner(labs, env.docname)
    notices: list[nodes.Node] = []
    if lab and labs[lab].problems:
        items = [nodes.list_item("", nodes.paragraph("", problem)) for problem in labs[lab].problems]
        notices.append(nodes.warning("", nodes.bullet_list("", *items)))
    if missing := kept.missing.get(env.docname):
        figures = (
            "1 figure that this page quotes is" if missing == 1 else f"{missing} figures that this page quotes are"
        )
        notices.append(nodes.note("", nodes.paragraph("", f"{figures} not in these results; a dash stands there.")))
    first = next(doctree.findall(nodes.section), None)
    if first is not None and notices:
        first[1:1] = notices  # behind the title


def decided_by(env: BuildEnvironment) -> set[str]:
    """Return the notebooks whose values decided a condition on the page that is being read."""
    return _kept(env).decided_by.get(env.docname, set())


def pages_of_moved_sources(env: BuildEnvironment) -> set[str]:
    """Return all pages if the labs' sources are not those of the last build, else none."""
    kept = _kept(env)
    file = Path(env.srcdir) / lab_source.FILE
    content = file.read_bytes() if file.is_file() else b""
    if content == kept.sources:
        return set()
    kept.sources = content
    return set(env.found_docs)


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """Forget a page that is about to be read again, or has left the book."""
    kept = _kept(env)
    kept.decided_by.pop(docname, None)
    kept.missing.pop(docname, None)


def setup(app: Sphinx) -> None:
    """Register this part of the extension."""
    app.connect("source-read", keep_what_holds)
    app.connect("doctree-read", put_notices)
    app.connect("env-purge-doc", forget)
    app.add_role("missing", MissingRole())


def _docname(book: Path, notebook: Path) -> str:
    return notebook.relative_to(book).with_suffix("").as_posix()


def _kept(env: BuildEnvironment) -> _Kept:
    if not hasattr(env, "speclab_kept"):
        setattr(env, "speclab_kept", _Kept())  # noqa: B010 - the class does not declare it
    kept: _Kept = getattr(env, "speclab_kept")  # noqa: B009
    return kept
