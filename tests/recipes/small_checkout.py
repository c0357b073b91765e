"""A small copy of the checkout, in which a recipe of CONTRIBUTING is followed and its result is looked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

LAB = """
title: A lab of a few short cells
question: Does a recipe work?
engine: simulated
target: {model: meta-llama/Llama-3.1-8B-Instruct, tokens: llama-3.1}
arms: [baseline, eagle3-k3]
workloads: [chat]
concurrencies: [1, 8]
phases: {length_s: 30, drop_first_s: 5, drop_last_s: 3}
sampling: {temperature: 0, max_tokens: 128, seed: 9}
simulated:
  device: h100-sxm
  shape: llama-3-8b
  answers: {chat: {mean_tokens: 60, cv: 0.4}}
"""
BASELINE = "lab: small\narm: baseline\nlabel: baseline\n"
HEAD = """
lab: small
arm: eagle3-k3
label: EAGLE-3, k = 3
speculation: {method: eagle3, model: a/head, num_speculative_tokens: 3}
simulated:
  shape: eagle3-head-8b
  floor_ms_per_position: 0.37
  acceptance: {chat: [0.745, 0.545, 0.404]}
"""
RUN = """
import json
from speclab import figures, results
from speclab.cli import cli
from speclab.figures.style import styles_of
for command in {commands}:
    cli(command, standalone_mode=False)
    print("NEXT")
found = results.of("small")
styles = styles_of(found.lab)
figure = {draw}
lines = [line for axis in figure.axes for line in axis.lines if len(line.get_xdata()) > 1]
print(json.dumps({{
    "words": [text.get_text() for axis in figure.axes for text in [axis.yaxis.label, *axis.texts]],
    "source": figure.get_supxlabel(),
    "lines": [(line.get_color(), line.get_marker()) for line in lines if line.get_marker() != "None"],
}}))
"""


@dataclass(frozen=True)
class Checkout:
    """A copy of the checkout with one small lab, and what is done in it in processes of their own."""

    root: Path

    def replace(self, file: str, old: str, new: str) -> None:
        """Replace a text that stands once in a file."""
        text = (self.root / file).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{file} holds {old!r} {text.count(old)} times"
        (self.root / file).write_text(text.replace(old, new), encoding="utf-8")

    def python(self, *arguments: str) -> str:
        """Return what a Python process in the copy prints."""
        environment = {
            **os.environ,
            "SPECLAB_ROOT": str(self.root),
            "PYTHONPATH": str(self.root / "src"),
            "MPLBACKEND": "agg",
        }
        done = subprocess.run(
            [sys.executable, *arguments], cwd=self.root, env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run(self, *, draw: str, also: Sequence[str] = ()) -> tuple[pd.DataFrame, dict[str, Any], str]:
        """Run the small lab; return what ``speclab findings --json`` prints, what a figure holds, and what `also` does.

        `draw` is an expression of ``figures`` and ``found``, the lab's results; `also` another command.
        """
        commands = [["run", "small"], ["findings", "small", "--json"], *([list(also)] if also else [])]
        # one process: its imports take longer than the cells
        printed = self.python("-c", RUN.format(commands=commands, draw=draw)).split("NEXT\n")
        return pd.DataFrame(json.loads(printed[1])), json.loads(printed[-1]), printed[2]

    def page(self, template: str) -> str:
        """Execute one of the lab's templates through papermill and return the text that its cells show."""
        page = self.root / "book" / "analysis" / "small" / f"{template}.ipynb"
        page.parent.mkdir(parents=True, exist_ok=True)
        asked = ["-p", "lab", "small", "-p", "engine", "simulated"]
        self.python("-m", "papermill", "--engine", "speclab", f"notebooks/lab/{template}.ipynb", str(page), *asked)
        cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
        shown = [output for cell in cells if cell["cell_type"] == "code" for output in cell["outputs"]]
        return "\n".join("".join(part) for output in shown for part in output.get("data", {}).values() if part)
