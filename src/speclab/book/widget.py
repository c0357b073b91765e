"""Interactive parts of a page: data and a small script in one piece of HTML, which loads no other file.

A chapter includes the piece with ``{raw} html``. So it works from a local file and without a network, no page loads a
script that it does not use, and a change of data or script is a change of a file that Sphinx watches.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any, Literal

from speclab import paths
from speclab.book import badge

Kind = Literal["animation", "explorer", "map"]

SCRIPTS: dict[Kind, tuple[str, ...]] = {
    "animation": ("dom", "animation"),
    "explorer": ("dom", "numbers", "explorer"),
    "map": ("dom", "numbers", "step_time", "ask", "map_plot", "map_field", "map"),
}
"""The scripts of each kind of widget, in the order in which its page runs them."""

DIGITS = 6
"""Significant digits of every number, so that the last bit of a sum is not a change."""


def html(
    kind: Kind, data: Mapping[str, Any], *, label: str, source: str, without_script: str, digits: int = DIGITS
) -> str:
    """Return a widget as HTML.

    Parameters
    ----------
    kind : {'animation', 'explorer', 'map'}
        Which scripts draw it.
    data : mapping
        What it draws: JSON types only, numbers finite.
    label : str
        A description, for those who cannot see it.
    source : str
        Badge of its numbers (`speclab.book.badge`).
    without_script : str
        Text for readers without scripts, or of a print.
    digits : int
        Significant digits of the data; more than `DIGITS` where the page computes with them.

    Raises
    ------
    ValueError
        A number is not finite: a missing value is None.
    """
    script = "\n".join(_script(name) for name in SCRIPTS[kind])
    return (
        f'<div class="widget widget-{kind}" data-widget="{kind}" aria-label="{escape(label)}">\n'
        f'<p class="widget-source">{badge.html(source)} {escape(label)}</p>\n'
        f'<p class="widget-without-script">{escape(without_script)}</p>\n'
        f'<script type="application/json">{to_json(data, digits)}</script>\n'
        "</div>\n"
        f"<script>(() => {{\n{script}}})();</script>\n"
    )


def keep(kind: Kind, data: Mapping[str, Any], name: str, **how: Any) -> None:
    """Write a widget to ``book/widgets/<name>.html``; the other arguments are those of `html`."""
    write(name, html(kind, data, **how))


def write(name: str, piece: str) -> None:
    """Write a piece of HTML to ``book/widgets/<name>.html``, where a chapter includes it from."""
    into = paths.book() / "widgets"
    into.mkdir(parents=True, exist_ok=True)
    (into / f"{name}.html").write_text(piece, encoding="utf-8")


def to_json(data: Any, digits: int = DIGITS) -> str:
    """Return JSON that can stand inside a script element of a page, numbers to some significant digits."""
    text = json.dumps(_rounded(data, digits), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", r"\u003c")  # text that holds </script> would end the element


def _rounded(value: Any, digits: int) -> Any:
    if isinstance(value, Mapping):
        return {key: _rounded(item, digits) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item, digits) for item in value]
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 10**digits
        return int(value) if whole else float(f"{value:.{digits}g}")
    return value


def _script(name: str) -> str:
    return (files("speclab.book") / "scripts" / f"{name}.js").read_text(encoding="utf-8")
