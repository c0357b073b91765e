"""Single passes: two requests over time, and where a pass stands under the roofline."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from speclab.figures.panels import WIDE, badge
from speclab.figures.style import BLACK, BLUE, GREY, ORANGE, PURPLE, SKY, VERMILION, styled
from speclab.roofline.devices import Device

BOUNDS = {"memory": SKY, "power": ORANGE, "compute": VERMILION}
"""Colours by what bounds the time of a pass."""


@styled
def replay(variants: pd.DataFrame, labels: Mapping[str, str], source: str) -> Figure:
    """Draw all passes of each variant over time: prompts, the target's part, drafting.

    Parameters
    ----------
    variants : pd.DataFrame
        ``speclab.replications.chapter10.animation()``: one row a variant, its passes nested.
    labels : mapping
        Variant to name in the figure, in order from the top.
    source : str
        Badge of the numbers.
    """
    figure = Figure(figsize=(WIDE[0], 0.95 + 0.5 * len(labels)), layout="constrained")
    axis = figure.subplots()
    rows: dict[str, dict[Hashable, Any]] = {row["variant"]: row for row in variants.to_dict("records")}
    for height, variant in enumerate(labels):
        row = rows[variant]
        for pass_ in row["passes"]:
            start, whole, draft = (1000 * pass_[key] for key in ("start_s", "duration_s", "draft_part_s"))
            colour = PURPLE if pass_["kind"] == "prefill" else BLUE
            axis.barh(height, draft, left=start, height=0.62, color=ORANGE, linewidth=0)
            axis.barh(
                height, whole - draft, left=start + draft, height=0.62, color=colour, edgecolor="white", linewidth=0.4
            )
        words = f"{row['tokens_per_pass']:.2f} tokens a pass, TPOT p99 {row['tpot_p99_ms']:.1f} ms"
        end_ms = 1000 * row["horizon_s"]
        axis.annotate(words, (end_ms, height), xytext=(6, 0), textcoords="offset points", va="center", fontsize=9)
    axis.set_yticks(range(len(labels)), list(labels.values()))
    axis.invert_yaxis()
    axis.set_xlim(0, 1000 * float(variants["horizon_s"].max()) * 1.45)
    axis.set_xlabel("ms since the first request arrived")
    axis.grid(axis="y", visible=False)
    keys = {"prompt": PURPLE, "drafting": ORANGE, "target's pass": BLUE}
    axis.legend(
        handles=[Patch(color=colour, label=name) for name, colour in keys.items()], fontsize=9, loc="center right"
    )
    badge(figure, source)
    return figure


@styled
def roofline(table: pd.DataFrame, devices: Mapping[str, Device], source: str) -> Figure:
    """Draw plain and verifying passes under each device's roofline, a panel a device.

    Parameters
    ----------
    table : pd.DataFrame
        ``device, batch, plain_flop_per_byte, plain_flop_per_s, plain_bound``, and the same three for ``verify``.
    devices : mapping
        Name in the table to the device, in order.
    source : str
        Badge of the numbers.
    """
    figure = Figure(figsize=(WIDE[0], 4.0), layout="constrained")
    axes = figure.subplots(1, len(devices), sharey=True, squeeze=False)[0]
    for axis, (slug, device) in zip(axes, devices.items(), strict=True):
        rows = table[table["device"] == slug].sort_values("batch")
        _roof(axis, device, table)
        for kind, marker in (("plain", "o"), ("verify", "s")):
            across, up = rows[f"{kind}_flop_per_byte"], rows[f"{kind}_flop_per_s"] / 1e12
            axis.plot(across, up, color=GREY, linewidth=0.8, zorder=2)
            for x, y, bound in zip(across, up, rows[f"{kind}_bound"], strict=True):
                axis.plot(x, y, marker=marker, color=BOUNDS[bound], markeredgecolor=BLACK, markersize=8, zorder=3)
        for kind, place in (("plain", (9, -13)), ("verify", (-8, 8))):
            for x, y, batch in zip(
                rows[f"{kind}_flop_per_byte"], rows[f"{kind}_flop_per_s"] / 1e12, rows["batch"], strict=True
            ):
                axis.annotate(
                    f"{batch}", (x, y), xytext=place, textcoords="offset points", ha="center", fontsize=8.5, color=GREY
                )
        axis.set_title(device.name)
        axis.set_xlabel("operations per byte, FLOP/byte")
    axes[0].set_ylabel("rate of the pass, TFLOP/s")
    marks = [("o", "plain pass"), ("s", "verifying pass")]
    handles = [
        *(axes[0].plot([], [], marker=marker, linestyle="none", color="none", markeredgecolor=BLACK, label=name)[0]
          for marker, name in marks),
        *(Patch(color=colour, label=f"set by {bound}") for bound, colour in BOUNDS.items()),
    ]  # fmt: skip
    axes[0].legend(handles=handles, fontsize=8.5, loc="lower right")
    badge(figure, f"numbers at points: rows in the batch · {source}")
    return figure


def _roof(axis: Axes, device: Device, table: pd.DataFrame) -> None:
    ends = (table[["plain_flop_per_byte", "verify_flop_per_byte"]].min().min() / 1.6, 4 * device.ridge_flop_per_byte)
    across = np.geomspace(*ends, 200)
    axis.plot(across, np.minimum(across * device.byte_per_s, device.flop_per_s) / 1e12, color=BLACK, linewidth=1.2)
    axis.axvline(device.ridge_flop_per_byte, color=GREY, linestyle=":", linewidth=1.0)
    axis.set_xscale("log")
    axis.set_yscale("log")


@styled
def closed_forms(draws: pd.DataFrame, theorems: pd.DataFrame, source: str) -> Figure:
    """Draw simulated values over those of the closed form: tokens per pass, speed-up, operations.

    Parameters
    ----------
    draws : pd.DataFrame
        ``closed_form_tokens_per_pass, simulated_tokens_per_pass``.
    theorems : pd.DataFrame
        ``speed_up_closed_form, speed_up_simulated, operations_closed_form, operations_simulated``.
    source : str
        Badge of the numbers.
    """
    figure = Figure(figsize=(WIDE[0], 3.5), layout="constrained")
    panels = (
        ("Tokens per pass (eq. 1)", draws["closed_form_tokens_per_pass"], draws["simulated_tokens_per_pass"]),
        ("Speed-up (theorem 3.8)", theorems["speed_up_closed_form"], theorems["speed_up_simulated"]),
        ("Operations (theorem 3.11)", theorems["operations_closed_form"], theorems["operations_simulated"]),
    )
    for axis, (title, across, up) in zip(figure.subplots(1, 3), panels, strict=True):
        ends = [0.95 * min(across.min(), up.min()), 1.05 * max(across.max(), up.max())]
        axis.plot(ends, ends, color=GREY, linewidth=1.0)
        axis.plot(across, up, marker="o", linestyle="none", color=BLUE, markersize=6)
        axis.set_title(title)
        axis.set_xlabel("closed form")
        axis.set_aspect("equal", adjustable="box")
    figure.axes[0].set_ylabel("simulated")
    badge(figure, f"on the line both agree · {source}")
    return figure
