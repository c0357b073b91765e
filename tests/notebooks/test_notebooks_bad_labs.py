"""Labs from which little can be concluded: the templates say so, and show no NaN."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pandas as pd
import pytest

from speclab import figures, paths, results
from speclab import lab as labs
from speclab.book import glue, shelf, table
from speclab.results import lab_tables

LAB = "cpu-smollm2"
TEMPLATES = (*shelf.QUESTIONS, "published")


def tables(lab: str = LAB, **parts: Any) -> lab_tables.Tables:
    """The tables of a committed lab, each cut by a function of its rows."""
    whole = results.of(lab).tables
    cut = {kind: getattr(whole, kind) for kind in lab_tables.KINDS}
    return lab_tables.Tables(
        **{kind: parts.get(kind, parts.get("every", lambda rows: rows))(cut[kind]) for kind in cut}
    )


BAD: dict[str, Any] = {
    "one arm only": lambda: tables(every=lambda rows: rows[rows["arm"] == "baseline"]),
    "no baseline": lambda: tables(every=lambda rows: rows[rows["arm"] != "baseline"]),
    "a missing baseline at one place": lambda: tables(
        every=lambda rows: rows[(rows["arm"] != "baseline") | (rows["concurrency"] > 1)]
    ),
    "a single repeat": lambda: tables(every=lambda rows: rows[rows["repeat"] == 0]),
    "three requests a cell": lambda: tables(
        every=lambda rows: rows[(rows["repeat"] == 0) & (rows["concurrency"] == 1)],
        blocks=lambda rows: rows[(rows["repeat"] == 0) & (rows["concurrency"] == 1)].assign(
            answers=lambda rows: (rows["block"] < 3).astype(float),
            tokens=lambda rows: rows["tokens"] * (rows["block"] < 3),
        ),
    ),
    "all cells failed": lambda: tables(
        cells=lambda rows: rows.assign(
            status="failed",
            failure="hung: no answer",
            **dict.fromkeys(rows.columns[rows.columns.get_loc("window_s") :], None),
        ),
        positions=lambda rows: rows[:0],
        checks=lambda rows: rows[:0],
        answers=lambda rows: rows[:0],
        blocks=lambda rows: rows[:0],
    ),
}


def part(lab: str, **less: tuple[Any, ...]) -> results.Results:
    """A committed lab that has fewer arms, workloads or concurrencies, with the results of what is left."""
    columns = {"arms": "arm", "workloads": "workload", "concurrencies": "concurrency"}
    left = labs.load(lab).model_copy(update={**less, "looks": {}})

    def kept(rows: pd.DataFrame) -> pd.DataFrame:
        for key, values in less.items():
            rows = rows[rows[columns[key]].isin(values)] if columns[key] in rows else rows
        return rows

    return results.Results(left, tables(lab, every=kept))


PARTS: dict[str, Any] = {
    "one concurrency": lambda: part(LAB, concurrencies=(4,)),
    "another workload alone": lambda: part(LAB, workloads=("completion",)),
    "neither n-gram nor a baseline": lambda: part(LAB, arms=("eagle3-k3", "eagle3-k1")),
    "a published lab without the arms that were published": lambda: part("lab09", arms=("baseline", "ngram-k2")),
}


@cache
def bad(name: str) -> results.Results:
    return PARTS[name]() if name in PARTS else results.Results(labs.load(LAB), BAD[name]())


@pytest.mark.parametrize("name", [*BAD, *PARTS])
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_says_what_it_cannot(name: str, template: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = bad(name)
    shown: list[str] = []
    pasted: dict[str, object] = {}
    show = table.html
    monkeypatch.setattr(results, "of", lambda *_: found)
    monkeypatch.setattr(figures, "keep", lambda figure, stem, **words: shown.append(" ".join([stem, *words.values()])))
    monkeypatch.setattr(table, "keep", lambda frame, stem: shown.append(frame.to_csv(na_rep="nan")))
    monkeypatch.setattr(table, "show", lambda *given, **how: shown.append(show(*given, **how)))
    monkeypatch.setattr(glue, "paste", lambda stem, value: pasted.update({stem: glue._plain(value)}))
    monkeypatch.setattr("IPython.display.display", lambda *_: None)
    scope: dict[str, Any] = {}
    file = paths.root() / "notebooks" / "lab" / f"{template}.ipynb"
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            is_parameters = "parameters" in cell["metadata"].get("tags", [])
            exec(f"lab, engine = {found.lab.name!r}, {found.lab.engine!r}" if is_parameters else source, scope)
    assert shown
    assert pasted
    for text in shown:
        assert ">nan" not in text.lower()
        assert ",nan" not in text.lower()


def test_the_bad_labs_are_as_bad_as_they_say() -> None:
    assert set(bad("all cells failed").rows("speed_up")["status"]) == {"failed check"}
    assert bad("one arm only").rows("speed_up").empty
    assert pd.isna(bad("three requests a cell").rows("speed_up")["low"]).all()
