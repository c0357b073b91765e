"""How every figure looks: one colour, marker and line for each arm, on every page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

# Okabe and Ito's palette, distinguishable with any colour vision (jfly.uni-koeln.de/color)
BLACK, ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
GREY = "#767676"
HALO = (withStroke(linewidth=2.5, foreground="white"),)
"""Behind a text that may lie on a line, as ``path_effects``."""


@dataclass(frozen=True, slots=True)
class ArmStyle:
    """How one arm is drawn; markers and lines differ too, so that a grey print can be read."""

    label: str
    colour: str
    marker: str
    line: Any

    def as_line(self) -> dict[str, Any]:
        """Return the keyword arguments of ``Axes.plot``."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.line}


ARMS = {
    "baseline": ArmStyle("baseline", BLACK, "o", (0, (1, 1))),
    "draft-1b-k3": ArmStyle("draft model, k=3", VERMILION, "^", "--"),
    "eagle3-k3": ArmStyle("EAGLE-3, k=3", BLUE, "s", "-"),
    "ngram-k8": ArmStyle("n-gram, k=8", GREEN, "D", "-."),
    "ngram-k2": ArmStyle("n-gram, k=2", PURPLE, "v", (0, (3, 1, 1, 1, 1, 1))),
    "eagle3-forced": ArmStyle("EAGLE-3, forced, k=3", SKY, "P", (0, (5, 1))),
    "eagle3-k2": ArmStyle("EAGLE-3, k=2", "#004C7A", "p", (0, (7, 2))),
    "eagle3-k1": ArmStyle("EAGLE-3, k=1", "#7FB8D8", "h", (0, (2, 1))),
    "draft-4l-k3": ArmStyle("draft model, 4 layers, k=3", VERMILION, "<", (0, (4, 1, 1, 1))),
}
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
    "svg.hashsalt": "speclab",  # ids by content, not by chance
    "svg.fonttype": "path",
}


def style_of(arm: str) -> ArmStyle:
    """Return how an arm is drawn; an arm without a style of its own is grey and named as it is."""
    return ARMS.get(arm, ArmStyle(arm, GREY, "x", "-"))


Parameters = ParamSpec("Parameters")


def styled(draw: Callable[Parameters, Figure]) -> Callable[Parameters, Figure]:
    """Draw a figure in the project's style."""

    @wraps(draw)
    def in_style(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Figure:
        with mpl.rc_context(SETTINGS):
            return draw(*args, **kwargs)

    return in_style
