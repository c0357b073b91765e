"""The book's Sphinx extension: no stale numbers, formulas without scripts, and badges that name a source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from myst_nb.ext.glue.utils import PendingGlueReference, create_pending_glue_ref
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

from speclab.book import badge, mathml, sphinx_follow
from speclab.errors import UserError

_LOG = logging.getLogger(__name__)
_UNCOLOURED = "source-badge"
_PROSE = (nodes.paragraph, nodes.inline, nodes.strong, nodes.caption, nodes.title)
_WHOLE = re.compile(r"(\(?[+-]?\d[\d.,]*%?–[+-]?\d[\d.,]*%?\)?|EAGLE-3)")


class BadgeRole(SphinxRole):
    """``{badge}`simulated (h100-sxm)` ``, or from a notebook's glued text: ``{badge}`path.ipynb::name` ``."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the badge; its colour is set once its text is known."""
        label = nodes.inline(classes=[_UNCOLOURED])
        self.set_source_info(label)
        document, separator, key = self.text.partition("::")
        if separator:
            source, line = self.get_source_info()
            label += create_pending_glue_ref(
                self.inliner.document, source, line, document, key, inline=True, gtype="text", fmt_spec="s"
            )
        else:
            label += nodes.Text(self.text)
        return [label], []


class ColourBadges(SphinxPostTransform):
    """Give each badge the class of its kind, after MyST-NB has filled in the glued texts (its priority is 5)."""

    default_priority = 6

    def run(self, **kwargs: Any) -> None:
        """Colour all badges of one page."""
        for label in self.document.findall(nodes.inline):
            if label["classes"] == [_UNCOLOURED]:
                try:
                    label["classes"] = badge.classes(label.astext())
                except UserError as error:
                    _LOG.warning("%s", error, location=label, type="speclab", subtype="badge")


class KeepWhole(SphinxPostTransform):
    """Keep an interval (``0.94–1.06``) and ``EAGLE-3`` on one line: browsers break lines after any dash."""

    default_priority = ColourBadges.default_priority + 1

    def run(self, **kwargs: Any) -> None:
        """Wrap each of them on one page in an element of the class ``whole``."""
        for text in list(self.document.findall(nodes.Text)):
            pieces = _WHOLE.split(text.astext())
            if len(pieces) == 1 or not isinstance(text.parent, _PROSE):
                continue
            parted: list[nodes.Node] = [
                nodes.inline("", piece, classes=["whole"]) if index % 2 else nodes.Text(piece)
                for index, piece in enumerate(pieces)
                if piece
            ]
            text.parent.replace(text, parted)


def remember_sources(app: Sphinx, doctree: nodes.document) -> None:
    """Note, when a page is read, which other pages it takes numbers, captions or titles from."""
    env = app.env
    taken = {reference.refdoc for reference in doctree.findall(PendingGlueReference)}
    taken |= sphinx_follow.decided_by(env)
    targets = {node["reftarget"] for node in doctree.findall(pending_xref) if "reftarget" in node}
    _glued(env)[env.docname] = taken
    _targets(env)[env.docname] = targets


def pages_to_read_again(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    """Return the pages that show something from a page that changed.

    Sphinx rereads only what changed itself, and MyST-NB fills numbers in afterwards: an untouched chapter would keep
    the number of the notebook's previous version (MyST-NB notes no dependency of a glue role on its notebook).
    """
    moved = added | changed | removed
    for page in moved:
        # old glued values must not stand in for a notebook that has left the book or no longer glues
        _glue_file(env, page).unlink(missing_ok=True)
    labels = {name for name, page in _labels(env) if page in moved}
    again = {
        page
        for page in env.found_docs - moved
        if _glued(env).get(page, set()) & moved or _targets(env).get(page, set()) & (labels | moved)
    }
    again |= sphinx_follow.pages_of_moved_sources(env) - moved
    if _style_moved(app):
        again.add(app.config.root_doc)  # Sphinx copies style sheets only when it writes a page
    return sorted(again)


def _style_moved(app: Sphinx) -> bool:
    static = Path(app.outdir) / "_static"
    ours = [file for folder in app.config.html_static_path for file in (Path(app.srcdir) / folder).glob("*.css")]
    return any(
        not (static / file.name).is_file() or file.read_bytes() != (static / file.name).read_bytes() for file in ours
    )


def drop_thebe(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object) -> None:
    """Leave out the scripts of Thebe, which would run cells on a public server; no page here offers that.

    Jupyter Book puts them on every page, and their constants twice, which is an error in every browser.
    """
    scripts = context.get("script_files", [])
    context["script_files"] = [
        script for script in scripts if "thebe" not in f"{script.filename} {script.attributes.get('body', '')}".lower()
    ]


def _labels(env: BuildEnvironment) -> Iterator[tuple[str, str]]:
    standard = env.domaindata.get("std", {})
    for kind in ("labels", "anonlabels"):
        for name, (page, *_) in standard.get(kind, {}).items():
            yield name, page


def _glue_file(env: BuildEnvironment, page: str) -> Path:
    """Return where MyST-NB keeps a page's glued values (`myst_nb.ext.glue.crossref`)."""
    return Path(env.mystnb_config.output_folder) / f"{page}.glue.json"  # type: ignore[attr-defined]


def _glued(env: BuildEnvironment) -> dict[str, set[str]]:
    return _stored(env, "speclab_glued")


def _targets(env: BuildEnvironment) -> dict[str, set[str]]:
    return _stored(env, "speclab_targets")


def _stored(env: BuildEnvironment, name: str) -> dict[str, set[str]]:
    if not hasattr(env, name):
        setattr(env, name, {})
    stored: dict[str, set[str]] = getattr(env, name)
    return stored


def _forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    _glued(env).pop(docname, None)
    _targets(env).pop(docname, None)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension; called by Sphinx."""
    app.connect("doctree-read", remember_sources)
    app.connect("env-purge-doc", _forget)
    app.connect("env-get-outdated", pages_to_read_again)
    sphinx_follow.setup(app)
    app.connect("html-page-context", drop_thebe, priority=900)  # after the extensions that add scripts to a page
    app.add_role("badge", BadgeRole())
    app.add_post_transform(ColourBadges)
    app.add_post_transform(KeepWhole)
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(mathml.visit_math, None),
        block_renderers=(mathml.visit_math_block, None),
    )
    # environment: pickled attributes of ours; raise the number when their shape changes
    return {"version": "1", "env_version": 2, "parallel_read_safe": False, "parallel_write_safe": True}
