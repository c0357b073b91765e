"""What a key follows and what it does not, on a small package, and on ours where a promise is made about it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import speclab
from speclab.cache import keys, store
from speclab.cache.code import Source
from speclab.cache.notes import Notes
from speclab.run.plan import BY_VALUE, SIMULATING

PACKAGE = {
    "__init__.py": "",
    "devices.py": 'A = 1\nB = 2\nTABLE = {"a": A}\n\n\ndef of(name):\n    return TABLE[name]\n',
    "price.py": "from speclab import devices\n\n\n"
    "def price():\n    return devices.of('a')\n\n\ndef other():\n    return 3\n",
    "face/__init__.py": "from speclab.face.inner import make\n",
    "face/inner.py": "from speclab.price import other\n\n\n"
    "class Maker:\n    def go(self):\n        return other()\n\n\n"
    "def make():\n    return Maker()\n",
    "lazy.py": "def call():\n    from speclab.price import price\n\n    return price()\n",
    "words/__init__.py": "from pathlib import Path\n\nFILE = Path(__file__).parent / 'words.txt'\n",
    "words/words.txt": "one two",
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for name, text in PACKAGE.items():
        file = tmp_path / "speclab" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tmp_path / "speclab"


def edit(package: Path, name: str, old: str, new: str) -> None:
    file = package / name
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "old", "new", "moved"),
    [
        ("devices.py", "A = 1", "A = 1  # measured twice", set()),
        ("devices.py", "def of(name):", 'def of(name):\n    """Look it up."""', set()),
        ("devices.py", "B = 2", "B = 3", set()),  # nothing reaches it
        ("devices.py", "A = 1", "A = 5", {"price", "lazy"}),
        ("price.py", "return 3", "return 4", {"face"}),
        ("words/words.txt", "two", "three", {"words"}),
    ],
)
def test_what_reaches_a_change_moves_and_nothing_else(
    package: Path, name: str, old: str, new: str, moved: set[str]
) -> None:
    entries = {
        "price": "speclab.price.price",
        "lazy": "speclab.lazy.call",
        "face": "speclab.face.make",
        "words": "speclab.words.FILE",
    }
    before = {entry: Source(package).sha256(dotted) for entry, dotted in entries.items()}
    edit(package, name, old, new)
    after = {entry: Source(package).sha256(dotted) for entry, dotted in entries.items()}
    assert {entry for entry in entries if before[entry] != after[entry]} == moved


def test_code_of_a_notebook_counts_with_all_that_it_reaches(package: Path) -> None:
    cells = "from speclab import devices\nfrom speclab.price import price\n\nprint(price())\n"
    before = Source(package).of_text(cells)
    assert Source(package).of_text(cells + "# a remark\n") == before
    assert Source(package).of_text(cells.replace("print", "repr")) != before
    edit(package, "devices.py", '{"a": A}', '{"a": 2 * A}')
    assert Source(package).of_text(cells) != before


def test_a_table_taken_by_value_does_not_count(package: Path) -> None:
    table = ("speclab.devices.TABLE", "speclab.devices.A")
    before = Source(package).sha256("speclab.price.price", by_value=table)
    edit(package, "devices.py", "A = 1", "A = 9")
    assert Source(package).sha256("speclab.price.price", by_value=table) == before


def test_an_unknown_entry_is_a_mistake(package: Path) -> None:
    with pytest.raises(LookupError, match="defines no nothing"):
        Source(package).sha256("speclab.price.nothing")


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ours") / "speclab"
    shutil.copytree(Path(speclab.__file__).parent, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_a_comment_in_a_device_file_makes_nothing_stale(ours: Path) -> None:
    entries = (*SIMULATING, "speclab.replications.chapter10.sweep.points", "speclab.results.of")
    before = [Source(ours).sha256(entry) for entry in entries]
    file = ours / "roofline" / "devices.py"
    file.write_text(f"# a remark\n{file.read_text(encoding='utf-8')}\n# another\n", encoding="utf-8")
    assert [Source(ours).sha256(entry) for entry in entries] == before


def test_a_simulated_cell_follows_its_own_device_and_the_simulator(ours: Path) -> None:
    def simulating() -> str:
        return Source(ours).sha256(*SIMULATING, by_value=BY_VALUE)

    before, findings = simulating(), Source(ours).sha256("speclab.results.of")
    edit(ours, "roofline/step.py", "STEP_OVERHEAD_S = ", "STEP_OVERHEAD_S = 2 * ")
    assert simulating() != before
    assert Source(ours).sha256("speclab.results.of") == findings  # analysis of records knows no price
    edit(ours, "roofline/step.py", "STEP_OVERHEAD_S = 2 * ", "STEP_OVERHEAD_S = ")
    edit(ours, "roofline/devices.py", "DEVICES", "DEVICES_")
    edit(ours, "roofline/devices.py", "DEVICES_", "DEVICES")
    assert simulating() == before


def test_notes_hold_for_the_same_key_and_the_same_left(tmp_path: Path) -> None:
    left = tmp_path / "page.html"
    left.write_text("one", encoding="utf-8")
    notes = Notes(tmp_path / "notes.json")
    assert not notes.is_fresh("page", "key", [left])
    notes.keep("page", "key", [left])
    assert Notes(tmp_path / "notes.json").is_fresh("page", "key", [left])
    assert not Notes(tmp_path / "notes.json").is_fresh("page", "other key", [left])
    assert not Notes(tmp_path / "notes.json", forget=True).is_fresh("page", "key", [left])
    left.write_text("two", encoding="utf-8")
    assert not Notes(tmp_path / "notes.json").is_fresh("page", "key", [left])
    (tmp_path / "notes.json").write_text("{", encoding="utf-8")
    assert not Notes(tmp_path / "notes.json").is_fresh("page", "key", [left])


def test_an_object_is_made_once_for_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECLAB_ROOT", str(tmp_path))
    made: list[int] = []

    def make() -> int:
        made.append(len(made))
        return made[-1]

    first, again = keys.of_values("a"), keys.of_values("b")
    assert [store.kept("thing", key, make) for key in (first, first, again, first)] == [0, 0, 1, 0]
    (broken,) = (tmp_path / ".build" / "cache").glob(f"thing-{first[:32]}.pickle")
    broken.write_bytes(b"not a pickle")
    assert store.kept("thing", first, make) == 2


def test_values_hash_by_content_and_refuse_what_they_do_not_know() -> None:
    assert keys.of_values({"a": 1, "b": [2.0]}) == keys.of_values({"b": [2.0], "a": 1})
    assert keys.of_values(1) != keys.of_values(1.5)
    with pytest.raises(TypeError, match="no value to hash"):
        keys.of_values(object())
