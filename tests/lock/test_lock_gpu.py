"""``constraints-gpu.txt``: that its versions fit pyproject.toml and one another, by metadata that was kept with them.

Whether pip comes to the same is asked in ``tests/live``."""

from __future__ import annotations

import json
import re
import tomllib
from collections import deque
from pathlib import Path

import pytest
from gpu_lock import LEFT_OUT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from speclab import paths

PROJECT = tomllib.loads((paths.root() / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LINES = [
    line for line in (paths.root() / "constraints-gpu.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]  # fmt: skip
LOCKED = {canonicalize_name(name): Version(version) for name, version in (line.split("==") for line in LINES)}
DIRECT = [Requirement(text) for text in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["gpu"])]
RECORDED = json.loads((Path(__file__).parent / "gpu_metadata.json").read_text(encoding="utf-8"))["packages"]


def needs(name: str) -> list[Requirement]:
    return [requirement for requirement in map(Requirement, RECORDED[name]["requires"])
            if canonicalize_name(requirement.name) not in LEFT_OUT]  # fmt: skip


def test_it_holds_one_version_of_each_package_in_order() -> None:
    assert all(re.fullmatch(r"[\w.-]+==[\w.!]+", line) for line in LINES)
    assert list(LOCKED) == sorted(LOCKED)
    assert len(LOCKED) == len(LINES)


@pytest.mark.parametrize("requirement", DIRECT, ids=str)
def test_every_direct_dependency_is_pinned_where_pyproject_allows(requirement: Requirement) -> None:
    assert requirement.specifier.contains(LOCKED[canonicalize_name(requirement.name)])


def test_the_versions_fit_one_another_by_their_own_metadata() -> None:
    assert {name: Version(package["version"]) for name, package in RECORDED.items()} == LOCKED
    unfit = [
        f"{name}: {requirement}"
        for name in LOCKED
        for requirement in needs(name)
        if not requirement.specifier.contains(LOCKED[canonicalize_name(requirement.name)], prereleases=True)
    ]
    assert unfit == []


def test_it_holds_what_is_needed_and_nothing_more() -> None:
    reached: set[str] = set()
    ahead = deque(canonicalize_name(requirement.name) for requirement in DIRECT)
    while ahead:
        if (name := ahead.popleft()) not in reached:
            reached.add(name)
            ahead.extend(canonicalize_name(requirement.name) for requirement in needs(name))
    assert reached == set(LOCKED)
