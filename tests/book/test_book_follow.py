"""Pages that follow the results, at the level of text: what holds stays, what does not is gone before it is parsed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import nbformat
import pytest

from speclab.book import conditions, lab_source, pasted
from speclab.book.conditions import ConditionError, Value
from speclab.book.follow import Followed, follow
from speclab.book.glue import PREFIX
from speclab.book.lab_source import LabSource
from speclab.errors import UserError

SIMULATED = LabSource(source="simulated (h100-sxm)", kind="simulated", engine="simulated", pages=("analysis/a/",))
MEASURED = LabSource(source="measured (vLLM 9.9, big-gpu)", kind="measured", engine="vllm", pages=("analysis/a/",))
VALUES: Mapping[str, Value] = {"n.ipynb::x": 0.75, "n.ipynb::y": 2, "n.ipynb::c": "180", "n.ipynb::t": "not reached"}


def notebook(file: Path, **values: Value) -> None:
    outputs = [
        nbformat.v4.new_output(
            "display_data",
            {f"{PREFIX}text/plain": repr(value)},
            metadata={"scrapbook": {"name": name, "mime_prefix": PREFIX}},
        )
        for name, value in values.items()
    ]
    file.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("", outputs=outputs)]), file)


def followed(book: Path, text: str, lab: LabSource = MEASURED) -> Followed:
    return follow(text, book / "page.md", book, {"a": lab})


@pytest.fixture
def book(tmp_path: Path) -> Path:
    notebook(tmp_path / "analysis" / "a" / "n.ipynb", top=0.93, crossover="not reached")
    return tmp_path


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a measured", True),
        ("a simulated", False),
        ("n.ipynb::x < 1", True),
        ("n.ipynb::x > 1", False),
        ("n.ipynb::x >= 0.75", True),
        ("n.ipynb::y == 2", True),
        ("n.ipynb::y != 2", False),
        ("n.ipynb::x < n.ipynb::y", True),
        ("n.ipynb::c > 100", True),
        ('n.ipynb::t is "not reached"', True),
        ('n.ipynb::t is "below 1"', False),
        ("n.ipynb::t > 100", None),
        ("n.ipynb::gone < 1", None),
        ('n.ipynb::gone is "x"', None),
        ("a measured and n.ipynb::x < 1", True),
        ("a simulated and n.ipynb::gone < 1", False),
        ("a measured and n.ipynb::gone < 1", None),
    ],
)
def test_a_condition_holds_or_not_or_is_undecided(condition: str, expected: bool | None) -> None:
    assert conditions.holds(condition, {"a": MEASURED}, VALUES.get) is expected


@pytest.mark.parametrize("condition", ["b measured", "a published", "x < 1", "n.ipynb::x ~ 1", "n.ipynb::x is y", ""])
def test_anything_else_is_no_condition(condition: str) -> None:
    with pytest.raises(ConditionError):
        conditions.holds(condition, {"a": MEASURED}, VALUES.get)


def test_blocks_are_chosen_inside_a_paragraph_and_around_headings(book: Path) -> None:
    text = (
        "One.\n:::{when} a simulated\nMade.\n:::\n:::{otherwise}\nTaken.\n:::\nTwo.\n\n"
        "::::{when} a measured\n## Where\n\n:::{figure} x.svg\n:name: x\n:::\n::::\n"
    )
    kept = followed(book, text)
    assert kept.text == "One.\nTaken.\nTwo.\n\n## Where\n\n:::{figure} x.svg\n:name: x\n:::\n"
    assert followed(book, text, SIMULATED).text == "One.\nMade.\nTwo.\n\n"
    assert kept.problems == []


def test_blocks_stand_inside_blocks(book: Path) -> None:
    inner = "::::{when} analysis/a/n.ipynb::top < 1\nlow\n::::\n::::{otherwise}\nhigh\n::::\n"
    text = f":::::{{when}} a measured\n{inner}:::::\n"
    assert followed(book, text).text == "low\n"


def test_a_choice_inside_a_line(book: Path) -> None:
    text = "On {when}`a simulated: a model`{otherwise}``{source}`a device` ``, {when}`a measured:  yes.`"
    assert followed(book, text).text == "On big-gpu,  yes."
    assert followed(book, text, SIMULATED).text == "On a model, "


def test_a_command_names_the_engine(book: Path) -> None:
    assert followed(book, "`run -p engine {source}`a engine` -p lab a`").text == "`run -p engine vllm -p lab a`"


def test_what_a_value_decides_depends_on_its_notebook(book: Path) -> None:
    text = "{when}`analysis/a/n.ipynb::top < 1: None gains.`{otherwise}`Some gain.`"
    assert followed(book, text).text == "None gains."
    notebook(book / "analysis" / "a" / "n.ipynb", top=1.25)
    kept = followed(book, text)
    assert kept.text == "Some gain."
    assert kept.notebooks == {book / "analysis" / "a" / "n.ipynb"}


def test_without_a_value_neither_claim_is_made(book: Path) -> None:
    text = "{when}`analysis/a/n.ipynb::gone < 1: None gains.`{otherwise}`Some gain.`{undecided}`See below.`"
    kept = followed(book, text)
    assert kept.text == "See below."
    assert kept.missing == ["analysis/a/n.ipynb::gone"]
    assert kept.problems == []


def test_a_missing_figure_is_a_dash_and_counted_once(book: Path) -> None:
    quoted = "{glue:text}`analysis/a/n.ipynb::gone:.2f`"
    kept = followed(book, f"{quoted} and {quoted}, {{glue:text}}`analysis/a/n.ipynb::top:.2f`")
    assert kept.text == "{missing}`–` and {missing}`–`, {glue:text}`analysis/a/n.ipynb::top:.2f`"
    assert kept.missing == ["analysis/a/n.ipynb::gone"]


def test_a_text_in_place_of_a_number_is_not_formatted_as_one(book: Path) -> None:
    kept = followed(book, "{glue:text}`analysis/a/n.ipynb::crossover:.0f`")
    assert kept.text == "{glue:text}`analysis/a/n.ipynb::crossover:s`"


def test_where_figures_must_be_there_a_missing_one_is_left_to_fail(book: Path) -> None:
    strict = MEASURED.model_copy(update={"strict": True})
    quoted = "{glue:text}`analysis/a/n.ipynb::gone:.2f`"
    assert followed(book, quoted, strict).text == quoted
    kept = followed(book, "{when}`analysis/a/n.ipynb::gone < 1: x`", strict)
    assert kept.problems == ["a condition asks for analysis/a/n.ipynb::gone, which no notebook has pasted"]


def test_a_figure_of_no_lab_must_be_there(book: Path) -> None:
    quoted = "{glue:text}`analysis/model/n.ipynb::gone:.2f`"
    assert followed(book, quoted).text == quoted


def test_a_missing_table_or_picture_keeps_its_caption_and_its_name(book: Path) -> None:
    text = (
        ":::{csv-table} A caption.\n:file: tables/a_x.csv\n:header-rows: 1\n:name: tab-x\n:::\n\n"
        ":::{figure} figures/a_x.svg\n:name: fig-x\n\nA caption.\n:::\n"
    )
    kept = followed(book, text)
    assert kept.text == (
        ':::{csv-table} A caption.\n:name: tab-x\n\n"–"\n:::\n\n'
        ":::{figure} /_static/missing.svg\n:name: fig-x\n\nA caption.\n:::\n"
    )
    assert kept.missing_files == {book / "tables" / "a_x.csv", book / "figures" / "a_x.svg"}
    for file in kept.missing_files:
        file.parent.mkdir()
        file.touch()
    assert followed(book, text).text == text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (":::{otherwise}\nx\n:::\n", "{otherwise} stands right behind"),
        ("x {otherwise}`y`", "{otherwise} stands right behind"),
        ("x {undecided}`y`", "{undecided} stands right behind"),
        (":::{when} a measured\nx\n", "never closed"),
        ("{when}`a measured`", "write CONDITION: text"),
        (":::{when} b measured\nx\n:::\n", "no results of a lab 'b'"),
        ("{source}`b`", "write LAB"),
        ("{source}`a colour`", "write LAB"),
    ],
)
def test_a_mistake_in_a_page_is_said(book: Path, text: str, problem: str) -> None:
    (said,) = followed(book, text).problems
    assert problem in said


def test_sources_are_read_and_a_mistake_names_the_file(tmp_path: Path) -> None:
    assert lab_source.read(tmp_path) == {}
    file = tmp_path / "sources.json"
    file.write_text(json.dumps({"a": MEASURED.model_dump(mode="json")}), encoding="utf-8")
    assert lab_source.read(tmp_path) == {"a": MEASURED}
    file.write_text('{"a": {"kind": "measured"}}', encoding="utf-8")
    with pytest.raises(UserError, match=r"sources\.json"):
        lab_source.read(tmp_path)


@pytest.mark.parametrize(
    ("source", "device"),
    [
        ("simulated (h100-sxm)", "h100-sxm"),
        ("measured (vLLM 0.33.0, NVIDIA H100 80GB HBM3)", "NVIDIA H100 80GB HBM3"),
        ("measured (vLLM 1, x) and measured (vLLM 2, x)", "x"),
        ("measured (vLLM 1, x) and measured (vLLM 1, y)", "x and y"),
    ],
)
def test_the_device_stands_last_in_the_badge(source: str, device: str) -> None:
    assert MEASURED.model_copy(update={"source": source}).device == device


def test_pasted_values_are_read_as_they_were_pasted(tmp_path: Path) -> None:
    file = tmp_path / "n.ipynb"
    assert pasted.read(file) == {}
    notebook(file, number=0.25, count=3, text="not reached")
    assert pasted.read(file) == {"number": 0.25, "count": 3, "text": "not reached"}
