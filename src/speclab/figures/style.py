"""How every figure looks: one colour, marker and line for each arm, on every page."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, ParamSpec

import matplotlib as mpl
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from speclab.lab import BASELINE, Arm, Lab, Look

# Okabe and Ito's palette, distinguishable with any colour vision (jfly.uni-koeln.de/color)
BLACK, ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
GREY = "#767676"
HALO = (withStroke(linewidth=2.5, foreground="white"),)
"""Outline of a text that may lie on a line, as ``path_effects``."""


@dataclass(frozen=True, slots=True)
class ArmStyle:
    """How one arm is drawn; markers and lines differ too, so that a greyscale print can be read."""

    label: str
    colour: str
    marker: str
    line: Any

    def as_line(self) -> dict[str, Any]:
        """Return the keyword arguments of ``Axes.plot``."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.line}


Styles = Mapping[str, ArmStyle]
"""The styles of a lab's arms, in the order in which they are drawn."""

BASELINE_STYLE = ArmStyle(BASELINE, BLACK, "o", (0, (1, 1)))

_BY_METHOD: dict[str | None, tuple[tuple[str, str, Any], ...]] = {
    "draft_model": ((VERMILION, "^", "--"), ("#8F3F00", "<", (0, (4, 1, 1, 1))), ("#EE9A66", ">", (0, (6, 1)))),
    "eagle3": (
        (BLUE, "s", "-"), ("#004C7A", "p", (0, (7, 2))), ("#7FB8D8", "h", (0, (2, 1))), (SKY, "P", (0, (5, 1))),
    ),
    "ngram": ((GREEN, "D", "-."), (PURPLE, "v", (0, (3, 1, 1, 1, 1, 1))), ("#005F45", "d", (0, (8, 1, 1, 1)))),
    None: ((ORANGE, "X", (0, (3, 2))),),
}  # fmt: skip
"""Colour, marker and line of a method's first arm, its second, and so on; None: an arm that does not speculate."""

_MORE_MARKERS = "*8HXd>v<ph"
"""Markers of further arms, which are in shades of the method's first colour."""

WORKLOADS = {"chat": "Chat", "completion": "Code completion", "revision": "Code revision"}

SETTINGS: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # ships with matplotlib: the same picture on every machine
    "font.size": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "lines.linewidth": 1.8,
    "lines.markersize": 5.5,
    "legend.frameon": False,
    "savefig.facecolor": "white",
    "svg.hashsalt": "speclab",  # ids by content, not random
    "svg.fonttype": "path",
}


def styles_of(lab: Lab) -> dict[str, ArmStyle]:
    """Return how a lab's arms are drawn: by their method and their place among the lab's arms of that method.

    A lab's ``looks`` come first; an arm that is added at the end of a lab changes no other arm's style. No two arms
    share a colour or, up to 16 arms, a marker, so that a greyscale print can be read too.
    """
    styles: dict[str, ArmStyle] = {}
    for name in sorted(lab.arms, key=lambda name: name not in lab.looks):  # stable: the rest in the lab's order
        chosen = {key: value for key, value in lab.looks.get(name, Look()) if value is not None}
        if isinstance(chosen.get("line"), tuple):
            chosen["line"] = (0, chosen["line"])
        styles[name] = replace(_next_style(lab.arm(name), styles.values()), **chosen)
    drawn_first = [name for name in lab.looks if name in styles]
    return {name: styles[name] for name in dict.fromkeys([*drawn_first, *lab.arms])}


def _next_style(arm: Arm, taken: Iterable[ArmStyle]) -> ArmStyle:
    """Return the first style of an arm's method whose colour and, while they last, marker no other arm has."""
    if arm.arm == BASELINE:
        return BASELINE_STYLE
    used = list(taken)
    colours, markers = {style.colour for style in used}, {style.marker for style in used}
    looks = _BY_METHOD[arm.speculation.method if arm.speculation else None]
    known = itertools.chain(looks, itertools.islice(_more(looks[0][0]), len(used) + len(_MORE_MARKERS)))
    free = [look for look in known if look[0] not in colours]
    colour, marker, line = next((look for look in free if look[1] not in markers), free[0])
    return ArmStyle(arm.label.replace(" = ", "="), colour, marker, line)


def _more(colour: str) -> Iterator[tuple[str, str, Any]]:
    """Yield looks without end: shades of a colour from three quarters black to three quarters white."""
    for place in itertools.count():
        share = 1.5 * ((0.2 + 0.618 * place) % 1) - 0.75  # steps of the golden ratio fill a range evenly
        other = 0.0 if share < 0 else 1.0
        red, green, blue = (part + (other - part) * abs(share) for part in to_rgb(colour))
        yield to_hex((red, green, blue)), _MORE_MARKERS[place % len(_MORE_MARKERS)], (0, (1 + place % 7, 1, 2, 1))


Parameters = ParamSpec("Parameters")


def styled(draw: Callable[Parameters, Figure]) -> Callable[Parameters, Figure]:
    """Draw a figure in the project's style."""

    @wraps(draw)
    def in_style(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Figure:
        with mpl.rc_context(SETTINGS):
            return draw(*args, **kwargs)

    return in_style
