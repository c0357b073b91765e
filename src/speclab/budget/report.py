"""A plan for the terminal, and as JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from speclab.budget.forecast import LIKELY
from speclab.budget.outlook import NEXT_H, Outlook
from speclab.budget.spend import Missing, minutes
from speclab.lab import BASELINE, Lab
from speclab.results import strict_json

MOST_LINES = 8
"""Lines of a list; the rest is counted (and is in the JSON)."""

PERCENT = 100


def to_json(made: Outlook, lab: Lab) -> str:
    """Return a plan as one JSON object; null where a number is not finite."""
    spending, pilot = made.spending, made.spending.pilot
    taken = minutes(spending)
    cells = [
        {"arm": arm, "workload": workload, "concurrency": concurrency, "minutes": taken[arm, workload, concurrency],
         "window_s": spending.shares[workload, concurrency].window_s[arm]}
        for arm, workload, concurrency in taken
    ]  # fmt: skip
    next_hour = made.next_hour and {
        "half_width": made.next_hour.half_width,
        "gained": [_place(*place) for place in made.next_hour.gained],
        "minutes": {_place(*place): gain for place, gain in made.next_hour.minutes.items()},
    }
    content = {
        "lab": lab.name,
        "pilot": pilot.source,
        "half_width": spending.half_width,
        "hours_given": made.hours,
        "hours": spending.hours,
        "repeats": spending.repeats,
        "asked": made.asked,
        "reached": len(made.speed_ups),
        "half_width_of_all": made.common and made.common.half_width,
        "cells": _rows(cells),
        "speed_ups": _rows(map(asdict, made.speed_ups)),
        "crossovers": _rows(map(asdict, made.crossings)),
        "flatness": _rows(map(asdict, made.flatness)),
        "missing": _rows(map(asdict, made.missing)),
        "next_hour": next_hour,
        "in_repeats": _rows(map(asdict, made.in_repeats)),
        "notes": notes(made),
    }
    return strict_json.dumps(content)


def _rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return strict_json.rows(pd.DataFrame(list(rows)))


def headline(made: Outlook) -> str:
    """Return what a plan buys as a sentence or three."""
    spending, count = made.spending, len(made.speed_ups)
    width, of_all = _percent(spending.half_width), f"{count} of {made.asked} speed-ups"
    if made.hours is None:
        text = f"{_buys(spending.hours)} half-widths of {width} at {of_all}, in {spending.repeats} repeats."
        if not count:
            text = f"No length buys a half-width of {width} at any of {made.asked} speed-ups."
    elif not count:
        text = f"{_buys(made.hours)} a half-width of {width} at none of {made.asked} speed-ups."
    else:
        used = "" if made.hours - spending.hours < 0.05 else f" ({_hours(spending.hours)} of them are used)"
        text = f"{_buys(made.hours)} half-widths of {width} at {of_all}, in {spending.repeats} repeats{used}."
    if made.affordable:
        first = made.affordable[0]
        text += f" {len(made.affordable)} more need more time: the cheapest, {_named(first)}, {_hours(first.hours)}."
    if made.out_of_reach:
        text += f" {len(made.out_of_reach)} cannot reach it at any length."
    if made.common is not None:
        text += f" Spread over all {made.asked}, the same time gives {_percent(made.common.half_width)}."
    return text


def notes(made: Outlook) -> list[str]:
    """Return what a forecast rests on, a sentence each."""
    pilot = made.spending.pilot
    repeats = Counter(cell.repeats for cell in pilot.cells).most_common(1)[0][0]
    made_of = [
        f"The pilot has {repeats} repeats, so its variances are rough: {_percent(LIKELY)} of half-widths will come out "
        "inside the range that --json gives with each (low, high).",
        "Each repeat is taken to serve other prompts, and a window to open when every slot has ended its first answer.",
    ]
    if any(cell.same_prompts for cell in pilot.cells):
        made_of.append(
            "The pilot served the same prompts in each repeat: its own intervals do not hold the texts' share."
        )
    if not any(cell.answers_per_s for cell in pilot.cells):
        made_of.append(
            "The pilot has no answers: how far texts scatter is counted with the steps, and their floor is not known."
        )
    if failed := [cell for cell in pilot.cells if not cell.passed]:
        made_of.append(f"! {len(failed)} cells failed a check in every repeat; they stand in for want of others.")
    if pilot.alone:
        places = ", ".join(_place(*place) for place in pilot.alone[:MOST_LINES])
        made_of.append(f"Left out for want of a baseline beside them: {places}.")
    if pilot.start_s:
        made_of.append(
            f"A server takes {pilot.start_s:.0f} s to start, as in the pilot; each repeat starts every arm's."
        )
    return made_of


def rendered(made: Outlook, lab: Lab) -> RenderableType:
    """Return a plan as tables and sentences."""
    return Group(*_blocks(made, lab))


def _blocks(made: Outlook, lab: Lab) -> Iterator[RenderableType]:
    yield Text(headline(made), style="bold")
    yield Text()
    for workload in lab.workloads:
        if any(cell.workload == workload for cell in made.spending.pilot.cells):
            yield _windows(made, lab, workload)
            yield Text()
    yield Text(
        "seconds of window in each repeat, and the half-width that is forecast; +h: hours that it would add; "
        "≥: the half-width that no length gets below; !: from cells that failed a check"
    )
    for title, lines in (
        ("What it will show", _shown(made)),
        (f"Where the next {'hour' if NEXT_H == 1 else f'{NEXT_H:g} hours'} goes", _next(made)),
        ("What no length resolves", _unreachable(made)),
    ):
        if lines:
            yield Text(f"\n{title}", style="bold")
            yield from (Text(f"  {line}") for line in lines)
    yield Text("\nMore repeats, or longer windows", style="bold")
    yield _repeats(made)
    yield Text()
    yield from (Text(note) for note in notes(made))


def _windows(made: Outlook, lab: Lab, workload: str) -> Table:
    pilot, shares = made.spending.pilot, made.spending.shares
    here = {(cell.arm, cell.concurrency): cell for cell in pilot.cells if cell.workload == workload}
    widths = {(row.arm, row.concurrency): row for row in made.speed_ups if row.workload == workload}
    left_out = {(row.arm, row.concurrency): row for row in made.missing if row.workload == workload}
    at = sorted({concurrency for _, concurrency in here})
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column(workload, no_wrap=True)
    for concurrency in at:
        table.add_column(str(concurrency), justify="right", no_wrap=True)

    def shown(arm: str, concurrency: int) -> Text:
        if (arm, concurrency) not in here:
            return Text("-", style="dim")
        window_s = shares[workload, concurrency].window_s if (workload, concurrency) in shares else {}
        if (row := widths.get((arm, concurrency))) is not None:
            return Text(f"{row.window_s:.0f} s  {_percent(row.half_width)}{'' if row.passed else '!'}", style="green")
        if arm == BASELINE:
            return Text(f"{window_s[arm]:.0f} s" if arm in window_s else "-")
        lacking = left_out[arm, concurrency]
        if math.isfinite(lacking.hours):
            return Text(f"+{lacking.hours:.1f} h" if lacking.hours >= 0.05 else "+<0.1 h", style="yellow")
        return Text(f"≥{_percent(lacking.best)}", style="red")

    for arm in lab.arms:
        if any(name == arm for name, _ in here):
            table.add_row(arm, *(shown(arm, concurrency) for concurrency in at))
    return table


def _shown(made: Outlook) -> list[str]:
    lines = []
    if made.speed_ups:
        unsure = sorted((row for row in made.speed_ups if row.excludes_1 < LIKELY), key=lambda row: -row.excludes_1)
        will = f"{len(made.speed_ups) - len(unsure)} of {len(made.speed_ups)} speed-ups will exclude 1"
        lines.append(f"{will} (a chance of {_percent(LIKELY)} or more){'; the others:' if unsure else '.'}")
        lines += _listed(
            f"{_place(row.arm, row.workload, row.concurrency)}, {row.value:.2f} in the pilot: "
            f"a chance of {_chance(row.excludes_1)}"
            for row in unsure
        )
    closed, one_side, open_ended = [], [], []
    for curve in made.crossings:
        name = f"{curve.arm} {curve.workload}"
        if curve.not_reached >= LIKELY:
            one_side.append(name)
        elif curve.closed >= LIKELY:
            closed.append(name)
        else:
            open_ended.append(f"{name} ({_chance(curve.closed)})")
    lines += _one_line("Crossovers that will be closed on both sides", closed)
    lines += _one_line("Curves that will be found on one side of 1", one_side)
    lines += _one_line("Crossovers that may stay open (the chance that they will be closed)", open_ended)
    bounded = [row for row in made.flatness if math.isfinite(row.bound) and row.pilot_bound >= LEAST_BOUND]
    still = [row for row in made.flatness if row.pilot_bound < LEAST_BOUND]
    lines += _one_line(
        "Bound of a change of acceptance, if there is none",
        [f"{row.arm} {row.workload} {_percent(row.bound)} ({row.prompts} prompts)" for row in bounded],
    )
    lines += _one_line(
        "Acceptance that moved in none of the pilot's prompts; planned",
        [f"{row.arm} {row.workload} ({row.prompts} prompts)" for row in still],
    )
    return lines


def _one_line(what: str, names: Sequence[str]) -> list[str]:
    return [f"{what}: {', '.join(names)}."] if names else []


LEAST_BOUND = 1e-6
"""A bound of a change that is none: every prompt was answered in the same steps at each concurrency."""


def _next(made: Outlook) -> list[str]:
    hour = made.next_hour
    if hour is None:
        return []
    if hour.gained:
        first = ", ".join(_place(*place) for place in hour.gained[:3])
        what = f"{len(hour.gained)} more reach {_percent(hour.half_width)}: {first}"
        beyond = len(hour.gained) - 3
        what += f" and {beyond} other{'s' * (beyond > 1)}" if beyond > 0 else ""
    else:
        what = f"all that are planned come to {_percent(hour.half_width)}"
    more = [f"+{gain:.0f} min  {_place(*place)}" for place, gain in hour.minutes.items() if gain >= 0.5]
    return [f"{what}.", *_listed(more)]


def _unreachable(made: Outlook) -> list[str]:
    prompts = {cell.workload: cell.prompts for cell in made.spending.pilot.cells}
    groups: dict[tuple[str, str], list[Missing]] = {}
    for row in made.out_of_reach:
        groups.setdefault((row.arm, row.workload), []).append(row)
    lines = []
    for (arm, workload), rows in groups.items():
        places = ", ".join(str(row.concurrency) for row in rows)
        best, needed = min(row.best for row in rows), max(row.prompts for row in rows)
        if math.isfinite(needed) and needed > prompts[workload]:
            why = f"{prompts[workload]} prompts differ too much; {math.ceil(needed)} would do"
        else:
            why = "the machine differs too much from repeat to repeat"
        lines.append(f"{arm}, {workload} at {places}: {_percent(best)} at best; {why}.")
    return lines


def _repeats(made: Outlook) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("repeats", "median window", "speed-ups", "hours"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in made.in_repeats:
        chosen = row.repeats == made.spending.repeats
        window = f"{row.window_s:.0f} s" if math.isfinite(row.window_s) else "-"
        figures = (str(row.repeats), window, str(row.speed_ups), f"{row.hours:.1f}")
        table.add_row(*figures, style="bold green" if chosen else "")
    return table


def _listed(lines: Iterable[str]) -> list[str]:
    there = list(lines)
    more = [f"  and {len(there) - MOST_LINES} more: --json has all"] if len(there) > MOST_LINES else []
    return [*(f"  {line}" for line in there[:MOST_LINES]), *more]


def _place(arm: str, workload: str, concurrency: int) -> str:
    return f"{arm} {workload} {concurrency}"


def _named(row: Missing) -> str:
    return _place(row.arm, row.workload, row.concurrency)


def _percent(share: float) -> str:
    return f"{share * PERCENT:.2g}%" if share < 0.1 else f"{share * PERCENT:.0f}%"


def _chance(share: float) -> str:
    return "less than 1%" if share < 0.01 else f"{share * PERCENT:.0f}%"


def _hours(hours: float) -> str:
    return f"{hours * 60:.0f} min" if hours < 1 else f"{hours:.3g} h"


def _buys(hours: float) -> str:
    return f"{_hours(hours)} {'buys' if _hours(hours).startswith('1 ') else 'buy'}"


__all__: Sequence[str] = ("headline", "notes", "rendered", "to_json")
