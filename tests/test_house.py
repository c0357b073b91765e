"""The house: rooms import downwards, the instrument knows no lab, and a class name has one meaning."""

from __future__ import annotations

import ast
import csv
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from speclab import paths

CHECKOUT = Path(__file__).parents[1]
PACKAGE = CHECKOUT / "src" / "speclab"

ROOMS = (
    "errors", "whole", "paths", "config", "processes", "cache", "prompts", "roofline", "lab", "engines", "load",
    "record", "metrics", "predict", "probe", "findings", "results", "budget", "run", "interval_coverage", "advice",
    "doctor", "drafters", "figures", "book", "replications", "cli",
)  # fmt: skip
"""Low to high: a room imports from itself and from those before it."""

MOST_BOXES, MOST_ROOT_MODULES = 28, 6
ABOVE_THE_INSTRUMENT = {"replications", "cli"}
FACE = PACKAGE / "__init__.py"
"""The public interface: it hands on what lies in any room, and its examples name a lab."""


def sources(*suffixes: str) -> list[Path]:
    return [file for file in sorted(PACKAGE.rglob("*")) if file.suffix in suffixes]


def room_of(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def instrument(*suffixes: str) -> list[Path]:
    return [file for file in sources(*suffixes) if file != FACE and room_of(file) not in ABOVE_THE_INSTRUMENT]


def imported(file: Path) -> Iterator[str]:
    """Yield the dotted names that a module imports of this package, also inside functions and for types only."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith("speclab."))
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            if node.module == "speclab":
                yield from (f"speclab.{name.name}" for name in node.names)
            elif node.module.startswith("speclab."):
                yield node.module


def arrows() -> Iterator[tuple[Path, str]]:
    """Yield each module below the face with the room of each of its imports."""
    for file in sources(".py"):
        if file != FACE:
            rooms = {name.split(".")[1] for name in imported(file)} & set(ROOMS)
            yield from ((file, room) for room in rooms - {room_of(file)})


def names_of_replications() -> list[str]:
    """Return the names of labs, of their arms, and of published figures that are no plain word."""
    labs = [file.parent for file in paths.labs().glob("*/lab.yml")]
    arms = {file.stem for lab in labs for file in lab.glob("*.yml")} - {"lab", "book", "baseline"}
    figures: set[str] = set()
    for table in paths.published().glob("*.csv"):
        lines = [line for line in table.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
        figures |= {row["id"] for row in csv.DictReader(lines)}
    return sorted({lab.name for lab in labs} | arms | figures)


def test_every_box_has_its_place_and_there_are_few() -> None:
    boxes = {room_of(file) for file in sources(".py") if file != FACE}
    assert boxes == set(ROOMS)
    assert len(boxes) <= MOST_BOXES
    assert len([file for file in PACKAGE.glob("*.py") if file != FACE]) <= MOST_ROOT_MODULES


def test_rooms_import_downwards_only() -> None:
    height = {room: place for place, room in enumerate(ROOMS)}
    found = list(arrows())
    assert len({(room_of(file), room) for file, room in found}) > 50, "imports are seen at all"
    upward = [f"{file.relative_to(PACKAGE)} -> {room}" for file, room in found if height[room] > height[room_of(file)]]
    assert upward == []


def test_the_instrument_imports_no_replication() -> None:
    known = [file for file in instrument(".py") for name in imported(file) if name.startswith("speclab.replications")]
    assert known == []


def test_the_instrument_names_no_lab_no_arm_and_no_published_figure() -> None:
    names = names_of_replications()
    assert {"lab09", "cpu-smollm2", "eagle3-k3", "b01"} <= set(names)
    quoted = "|".join(re.escape(name) for name in names)
    named = re.compile(rf"(?<![\w-])(?:{quoted})(?![\w-])|\blab[ _]?0?9\b|\bchapter[ _]?10\b", re.IGNORECASE)
    places = {
        (str(file.relative_to(PACKAGE)), match.group())
        for file in instrument(".py", ".js")
        for match in named.finditer(file.read_text(encoding="utf-8"))
    }
    assert places == set()


def test_a_class_name_has_one_meaning() -> None:
    classes = Counter(
        node.name
        for file in sources(".py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert len(classes) > 100
    assert [name for name, times in classes.items() if times > 1] == []


def test_no_module_is_long() -> None:
    lines = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in sources(".py")}
    assert [file.name for file, count in lines.items() if count > 400] == []
