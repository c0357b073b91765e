"""Formulas as MathML, written while the book is built: browsers render it natively, so no page loads a script."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

_LOG = logging.getLogger(__name__)

# latex2mathml passes what it does not know through as an identifier, a bad alignment mark included
_NOT_UNDERSTOOD = re.compile(r"<m[io]>(\\[A-Za-z]+|&)</m[io]>")
_ALIGNED = re.compile(r"\\(begin|end)\{(?:aligned|split|gathered)\}")


class MathError(ValueError):
    """A formula that cannot be turned into MathML."""


def to_mathml(latex: str, *, display: bool) -> str:
    r"""Return a LaTeX formula as a ``<math>`` element.

    Parameters
    ----------
    latex : str
        The formula, without dollar signs. ``aligned`` and ``split`` are taken as ``align*``.
    display : bool
        Whether it stands on a line of its own.

    Raises
    ------
    MathError
        A command that is not understood, or braces that do not match.
    """
    source = _ALIGNED.sub(r"\\\1{align*}", latex.strip())
    if source.replace(r"\{", "").count("{") != source.replace(r"\}", "").count("}"):
        raise MathError(f"braces do not match in {latex!r}")
    try:
        mathml = convert(source, display="block" if display else "inline")
    except Exception as error:  # the converter's exceptions have no common base class
        raise MathError(f"{type(error).__name__} in {latex!r}") from error
    unknown = _NOT_UNDERSTOOD.search(mathml)
    if unknown:
        raise MathError(f"{unknown[1]!r} is not understood in {latex!r}")
    return mathml


def visit_math(self: Any, node: nodes.math) -> None:
    """Write an inline formula."""
    self.body.append(f'<span class="math notranslate nohighlight">{_converted(node, display=False)}</span>')
    raise nodes.SkipNode


def visit_math_block(self: Any, node: nodes.math_block) -> None:
    """Write a formula on its own line, with its number if it has a label."""
    self.body.append(self.starttag(node, "div", CLASS="math notranslate nohighlight"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append(_converted(node, display=True))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def _converted(node: nodes.Node, *, display: bool) -> str:
    try:
        return to_mathml(node.astext(), display=display)
    except MathError as error:
        _LOG.warning("formula: %s", error, location=node, type="speclab", subtype="math")
        return ""
